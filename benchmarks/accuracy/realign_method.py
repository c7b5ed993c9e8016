"""Realign, an experiment: undo the class biases of a shift, from unlabelled outputs.

It is a method of its own on the public base class, measured by ``realign.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, final

import numpy as np
from class_bias import (
    MOST_ROWS,
    Correction,
    Panel,
    describe,
    effective_rows,
    learn,
    log_odds,
    match,
    shrunk,
)
from numpy.typing import ArrayLike, NDArray

from shiftcal.checks import check_choice, check_count, check_fraction
from shiftcal.errors import InputError
from shiftcal.methods.method import Method, Selection, few_rows, fit_map
from shiftcal.methods.rehearsal import Rehearsal, _ladders
from shiftcal.numerics.softmax import p_max, softmax
from shiftcal.persistence import POSITIVE, SHARE
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Flag, Floats, Logits, Probs

_PRIORS = ("unknown", "calibration")
# Flags of Rehearsal that hold here too; its others are about the temperature.
_SHARED = {"few-rows", "one-set", "one-corruption", "like-clean", "outside-bank"}


@final
class Realign(Method):
    """Corrects the class biases that a shift causes, and with them the predictions.

    Under corruption a network keeps the temperature it had and favours a few classes. Realign
    estimates a bias per class from the target's outputs, so that ``predict_proba`` is
    ``softmax(z / T + b)``: it can change the predicted class. ``confidence`` is the probability
    that the *model's own* prediction is correct, which can be below ``1 / k``.

    With ``prior="unknown"`` three experts answer (the class mix is as in the calibration set; it is
    another; no bias at all), and a gate learned on the bank weighs them
    (:mod:`shiftcal.methods.class_bias`). The level of ``confidence`` is halfway between this answer
    and that of :class:`Rehearsal`, and is Rehearsal's alone where the target is outside the bank. A
    target that cannot be told from the clean set is left as it is, as by TS.

    Args:
        prior: The share of each class in the target: ``"unknown"``; ``"calibration"`` if you know
            that it is as in the calibration set, which needs no corrupted sets; or the shares
            ``(k,)``. A wrong claim costs accuracy.
        level: Coverage aimed at by the intervals of the estimated accuracies.
        seed: Of all draws.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperature_: Of the clean set.
        mix_: ``(k,)`` class mix that is assumed where it is not estimated.
        n_calibration_: Rows of the clean set.
        rehearsal_: The fitted :class:`Rehearsal`, if the prior is unknown.
        panels_: The experts for few and for many rows, if the prior is unknown.
        level_: The level it was fitted for.
        bias_: ``(k,)`` biases of the last target.
        shift_: Added to the log-odds of ``confidence``.
    """

    name: ClassVar[str] = "realign"
    uses_target: ClassVar[bool] = True
    uses_bank: ClassVar[bool] = True
    ranges: ClassVar = {"temperature_": POSITIVE, "level_": SHARE, "mix_": SHARE}

    temperature_: float
    mix_: NDArray[np.float64]
    n_calibration_: int
    rehearsal_: Rehearsal | None
    panels_: tuple[Panel, ...]
    level_: float
    bias_: NDArray[np.float64] | None
    shift_: float

    def __init__(
        self,
        *,
        prior: str | ArrayLike = "unknown",
        level: float = 0.95,
        seed: int = 0,
        input: str = "logits",
    ) -> None:
        self.prior = prior
        self.level = level
        self.seed = seed
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        self.level_ = check_fraction(self.level, name="level")
        seed = check_count(self.seed, name="seed", least=0)
        clean = bank.clean
        counts = np.bincount(clean.labels, minlength=bank.n_classes) + 0.5
        self.mix_, self.n_calibration_ = counts / counts.sum(), len(clean.labels)
        where = f"the clean set ({clean.name})"
        self.temperature_ = float(
            fit_map("temperature", clean.logits, clean.labels, where=where).temperature_
        )
        self.rehearsal_, self.panels_ = None, ()
        self.bias_, self.shift_ = None, 0.0
        if not isinstance(self.prior, str):
            self.mix_ = _check_shares(self.prior, bank.n_classes)
        elif check_choice(self.prior, _PRIORS, name="prior") == "unknown":
            self.rehearsal_ = Rehearsal(level=self.level_, seed=seed, input=self.input).fit(bank)
            if len(bank) > 1:
                sets = [s.logits for s in bank]
                labels = [s.labels for s in bank]
                self.panels_ = learn(
                    sets, labels, _ladders(bank), self.temperature_, self.mix_, seed=seed
                )

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        rows = logits
        if len(logits) > MOST_ROWS:
            rows = logits[np.linspace(0, len(logits) - 1, MOST_ROWS).astype(np.intp)]
        a = rows.astype(np.float64) / self.temperature_
        if self.rehearsal_ is None:
            b, variance = match(
                a, _even(a), self.mix_, effective_rows(len(logits), self.n_calibration_)
            )
            scale, self.bias_ = shrunk(b, variance)
            self.shift_ = 0.0
            flags = tuple(few_rows(len(logits)))
            return self._selection(logits, rows, scale, flags, {})
        known = self.rehearsal_.adapt(logits)
        flags = tuple(flag for flag in known.flags if flag.code in _SHARED)
        self.bias_, self.shift_ = np.zeros(a.shape[1]), 0.0
        if not self.panels_ or known.has("like-clean"):
            return self._selection(logits, rows, 1.0, flags, {})
        correction, errors = self._correct(a, len(logits))
        self.bias_ = correction.bias
        weights = dict(zip(("same_mix", "other_mix", "plain"), correction.weights, strict=True))
        details = {f"weight_{name}": float(value) for name, value in weights.items()}
        flags = (*flags, *_left_alone(details))
        # The level of the model's own predictions, halfway to what Rehearsal says.
        q = softmax(correction.scale * a + correction.bias)
        own = q[np.arange(len(a)), rows.argmax(axis=1)]
        assert known.temperature is not None
        level = float(p_max(rows, known.temperature).mean())
        share = 1.0 if known.has("outside-bank") else 0.5
        self.shift_ = _shift(own, (1 - share) * float(own.mean()) + share * level)
        chosen = self._selection(logits, rows, correction.scale, flags, details)
        return replace(chosen, details={**chosen.details, **self._intervals(chosen, errors)})

    def _correct(
        self, a: NDArray[np.float64], n: int
    ) -> tuple[Correction, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """The correction of a target, between those for few and for many rows."""
        w = _even(a)
        outputs = describe(a, w, self.mix_, n, self.n_calibration_)
        few, many = self.panels_[0], self.panels_[-1]
        share = math.log(n / few.size) / math.log(many.size / few.size)
        if share <= 0 or share >= 1:
            panel = few if share <= 0 else many
            found = panel.correct(outputs, a, w, self.mix_)
            return found, (panel.kept_errors, panel.corrected_errors)
        parts = [panel.correct(outputs, a, w, self.mix_) for panel in (few, many)]
        mean = [(1 - share) * low + share * high for low, high in zip(*parts, strict=True)]
        kept = (1 - share) * few.kept_errors + share * many.kept_errors
        corrected = (1 - share) * few.corrected_errors + share * many.corrected_errors
        return Correction(*mean), (kept, corrected)

    def _selection(
        self,
        logits: Logits,
        rows: Logits,
        scale: float,
        flags: tuple[Flag, ...],
        details: dict[str, float],
    ) -> Selection:
        assert self.bias_ is not None
        temperature = self.temperature_ / scale
        z = rows.astype(np.float64) + temperature * self.bias_
        corrected = softmax(z, temperature)
        return Selection(
            self.name,
            temperature=temperature,
            n_target=len(logits),
            mean_confidence=float(p_max(logits).mean()),
            n_sets=None if self.rehearsal_ is None else len(self.rehearsal_.ladder_),
            details={
                "estimated_accuracy": float(self._own(corrected, rows).mean()),
                "corrected_accuracy": float(corrected.max(axis=1).mean()),
                "changed": float((corrected.argmax(axis=1) != rows.argmax(axis=1)).mean()),
                "largest_bias": float(np.abs(self.bias_).max()),
                **details,
            },
            flags=flags,
        )

    def _intervals(
        self, chosen: Selection, errors: tuple[NDArray[np.float64], NDArray[np.float64]]
    ) -> dict[str, float]:
        """Ends of the estimated accuracies, by the errors on corruptions that were left out."""
        found: dict[str, float] = {}
        tails = [(1 + self.level_) / 2, (1 - self.level_) / 2]
        for name, own in zip(("estimated_accuracy", "corrected_accuracy"), errors, strict=True):
            low, high = np.clip(chosen.details[name] - np.quantile(own, tails), 0, 1)
            found |= {f"{name}_low": float(low), f"{name}_high": float(high)}
        return found

    def _apply(self, logits: Logits) -> Probs:
        assert self.selection_ is not None
        assert self.selection_.temperature is not None
        assert self.bias_ is not None
        temperature = self.selection_.temperature
        return softmax(logits.astype(np.float64) + temperature * self.bias_, temperature)

    def confidence(self, logits: object) -> NDArray[np.float64]:
        """Probability that the model's own prediction is correct ``(n,)``."""
        z = self._check_target(logits)
        return self._own(self._apply(z), z)

    def _own(self, corrected: Probs, logits: Logits) -> NDArray[np.float64]:
        """Probability that the model's own prediction is correct."""
        own = corrected[np.arange(len(logits)), logits.argmax(axis=1)]
        if self.shift_ == 0:
            return own
        return np.asarray(1 / (1 + np.exp(-(log_odds(own) + self.shift_))))

    def after_load(self) -> None:
        """Reject a file whose class mix or biases are not of its classes."""
        super().after_load()
        if not hasattr(self, "n_classes_"):
            return
        sizes = [self.mix_.shape, *([] if self.bias_ is None else [self.bias_.shape])]
        if any(size != (self.n_classes_,) for size in sizes):
            raise InputError(f"it must have a class mix and biases of {self.n_classes_} classes")
        if (self.selection_ is None) != (self.bias_ is None):
            raise InputError("it must have biases if it was adapted, and only then")


def _even(a: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(len(a), 1 / len(a))


def _check_shares(prior: object, k: int) -> NDArray[np.float64]:
    try:
        shares = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    if shares.shape != (k,) or not (shares >= 0).all() or not 0.99 < shares.sum() < 1.01:
        raise InputError(
            f'prior must be "unknown", "calibration" or the shares of the {k} classes, which add '
            f"up to 1; got {prior!r:.80}."
        )
    # A class that is said to be absent stays possible: no finite bias would remove it.
    shares = np.maximum(shares, 1e-4)
    return np.asarray(shares / shares.sum())


def _left_alone(weights: dict[str, float]) -> Iterator[Flag]:
    if weights["weight_plain"] > 0.5:
        yield Flag(
            "not-corrected",
            "the outputs fit a bias of the network as well as another mix of classes: predictions "
            "are left mostly as they are. If you know the mix, give it as prior.",
        )


def _shift(p: NDArray[np.float64], mean: float) -> float:
    """What to add to the log-odds of ``p`` so that they have this mean."""
    odds, shift = log_odds(p), 0.0
    for _ in range(50):
        now = 1 / (1 + np.exp(-(odds + shift)))
        step = (float(now.mean()) - mean) / max(float((now * (1 - now)).mean()), 1e-3)
        shift -= min(max(step, -1.0), 1.0)
        if abs(step) < 1e-9:
            break
    return shift
