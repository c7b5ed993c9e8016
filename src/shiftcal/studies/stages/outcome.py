"""One variant on one target: fitted, adapted, judged."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftcal import methods, metrics
from shiftcal._types import Floats, Labels, Logits, Probs
from shiftcal.datasets import calibration_split
from shiftcal.errors import FitWarning, InputError
from shiftcal.maps.temperature import Temperature
from shiftcal.methods import Method
from shiftcal.numerics.softmax import p_max
from shiftcal.studies.archive import Archive, Split, Stored
from shiftcal.studies.plan.methods import ORACLE
from shiftcal.studies.variant import CLEAN, Ladder, Target, Variant
from shiftcal.surrogates import SurrogateBank, SurrogateSet


@dataclass(frozen=True)
class Outcome:
    """What came of one variant on one target; fields as in :class:`Record`."""

    n_sets: int
    n_calibration: int
    n: int
    ece: float
    debiased_ece: float
    nll: float
    brier: float
    accuracy: float
    confidence: float
    raw_confidence: float
    temperature: float | None
    chosen: str
    flags: str


def bank_of(archive: Archive, ladder: Ladder, split: Split, *, seed: int) -> SurrogateBank:
    """The surrogate sets of a ladder: the calibration rows of a split, or a part of them.

    Args:
        archive: The scores.
        ladder: Which sets, and how many images.
        split: Whose calibration rows.
        seed: Of the split; decides which part of the rows is taken.
    """
    rows = split.calibration
    if ladder.images is not None and ladder.images < len(rows):
        labels = archive.scores(CLEAN).labels
        assert labels is not None
        rows = rows[calibration_split(labels[rows], n=ladder.images, seed=seed)[0]]
    sets = []
    for severity, name in zip((0, *ladder.severities), ladder.sets, strict=True):
        stored = archive.scores(name)
        assert stored.labels is not None
        features = stored.features[rows] if stored.features is not None and not severity else None
        sets.append(
            SurrogateSet(
                stored.logits[rows],
                stored.labels[rows],
                name,
                corruption=ladder.corruption if severity else None,
                severity=severity,
                features=features,
            )
        )
    return SurrogateBank(sets)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A method that has learnt what it can before it sees a target.

    Attributes:
        method: The method; ``None`` is the oracle, which learns from each target's labels.
        n_sets: How many sets it learnt from.
        n_calibration: Images in each.
    """

    method: Method | None
    n_sets: int
    n_calibration: int


class Trained(Protocol):
    """Where the features of the images are that a model was trained on."""

    def train_features(self) -> Floats | None:
        """Features of the training images, ``(m, d)``."""


def fitted(variant: Variant, bank: SurrogateBank, trained: Trained) -> Fitted:
    """The variant's method, fitted to a bank; a draw of its own comes after that."""
    if variant.method == ORACLE:
        return Fitted(None, 1, len(bank.clean))
    method: Method = methods.get(variant.method)(**variant.settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # what matters comes again as a flag
        method.fit(bank, source_features=_source_features(variant, method, trained))
    return Fitted(method, len(bank) if method.uses_bank else 1, len(bank.clean))


def _source_features(variant: Variant, method: Method, trained: Trained) -> Floats | None:
    if not method.uses_features:
        return None
    features = trained.train_features()
    if features is None:
        raise InputError(
            f"{variant.label} needs features of training images, and there are none: name them "
            "in the plan, [data] train = ..., with a model that gives features; or leave the "
            "method out."
        )
    return features


def rows_of(stored: Stored, target: Target, split: Split) -> Stored:
    """The test rows of a target: all of them if it has images of its own."""
    if target.natural:
        return stored
    rows = split.test
    assert stored.labels is not None
    features = None if stored.features is None else stored.features[rows]
    return Stored(stored.logits[rows], stored.labels[rows], features)


def judged(made: Fitted, target: Stored, *, bins: int, seed: int | None = None) -> Outcome:
    """Adapt to a target and compare its calibrated confidences with its labels.

    Args:
        made: A fitted method.
        target: Test rows with labels.
        bins: Of the ECE.
        seed: Of the method's own draw; ``None`` is the one it was made with.
    """
    method, labels = made.method, target.labels
    assert labels is not None
    chosen, flags = "", ""
    temperature: float | None
    if method is None:
        temperature, probs = _oracle(target.logits, labels)
    else:
        if seed is not None:
            method.set_params(seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            selection = method.adapt(target.logits, target.features)
            probs = method.predict_proba(target.logits)
        temperature = selection.temperature
        chosen = selection.set_name or ""
        flags = " ".join(flag.code for flag in selection.flags)
    return Outcome(
        n_sets=made.n_sets,
        n_calibration=made.n_calibration,
        **_judgement(probs, labels, bins),
        raw_confidence=float(p_max(target.logits).mean()),
        temperature=temperature,
        chosen=chosen,
        flags=flags,
    )


def _oracle(logits: Logits, labels: Labels) -> tuple[float, Probs]:
    """Temperature scaling on the target's own labels: what no method without them can know."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        scaling = Temperature().fit(logits, labels)
    return scaling.temperature_, scaling.predict_proba(logits)


def _judgement(probs: Probs, labels: Labels, bins: int) -> dict[str, Any]:
    confidence: NDArray[np.float64] = probs.max(axis=1)
    correct = probs.argmax(axis=1) == labels
    return {
        "n": len(labels),
        "ece": metrics.ece(confidence, correct, n_bins=bins),
        "debiased_ece": metrics.debiased_ece(confidence, correct, n_bins=bins),
        "nll": metrics.nll(probs, labels),
        "brier": metrics.brier(probs, labels),
        "accuracy": float(correct.mean()),
        "confidence": float(confidence.mean()),
    }
