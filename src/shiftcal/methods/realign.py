"""Realign: corrects the class biases that a shift causes, and with them the predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shiftcal.checks import check_choice, check_count, check_fraction
from shiftcal.errors import InputError
from shiftcal.maps import Vector
from shiftcal.methods.class_bias import (
    PANELS,
    SIZES,
    Panel,
    consult,
    learn,
    log_odds,
    same_prior,
    shift_to_mean,
    sigmoid,
)
from shiftcal.methods.method import Method, Selection, few_rows, fit_map
from shiftcal.methods.rehearsal import Rehearsal, ladders_of
from shiftcal.numerics.softmax import p_max, softmax
from shiftcal.numerics.temperature import FitStatus
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Flag, Floats, Logits, Probs

Array = NDArray[np.float64]

_PRIORS = ("unknown", "calibration")
# Flags of Rehearsal that hold here too; its others are about the temperature.
_SHARED = {"few-rows", "one-set", "one-corruption", "like-clean", "outside-bank"}
# More rows than this add nothing to the biases.
_MOST_ROWS = 10_000
# Calibration rows a class. With fewer, what is learned of a class is chance.
_ROWS_PER_CLASS = 10
# Corruptions of the bank. With fewer, too little is left to learn from when one is left out.
_CORRUPTIONS = 5
# How far the mean confidence goes towards that of Rehearsal.
_REHEARSED = 0.25
# Distance from the clean set where the correction is whole. At 1 it is TS: see Rehearsal.
_FAR = 3.0


@final
class Realign(Method):
    """Corrects the class biases that a shift causes, and with them the predictions.

    Under corruption a network keeps its temperature and favours a few classes. Realign estimates
    one bias per class from the target's unlabelled outputs: ``predict_proba`` is
    ``softmax(s z / T + b)``, so the predicted class can change. ``confidence`` is the probability
    that the *model's own* prediction is correct; it can be below ``1 / k``.

    With ``prior="unknown"`` three experts answer (the class prior is that of the calibration set;
    it has moved; no bias), and a gate learned on the bank weighs them. Eight panels of experts and
    gate learn from different draws; biases on which they disagree are shrunk. The level of
    ``confidence`` is a quarter of the way to that of :class:`Rehearsal`. A target that cannot be
    told from the clean set is left alone, as by TS, and close to it the correction is partial. With
    fewer than five corruptions in the bank, or fewer than ten calibration rows a class, it is
    Rehearsal.

    Args:
        prior: Class prior of the target: ``"unknown"``; ``"calibration"`` if you know that it is
            that of the calibration set, which needs no corrupted sets; or the shares ``(k,)`` of
            the classes. A wrong claim costs accuracy.
        level: Coverage aimed at by the intervals of the estimated accuracies.
        seed: Of all draws.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperature_: Of the clean set.
        prior_: ``(k,)`` class prior of the calibration set, or the one that was given.
        n_calibration_: Rows of the clean set.
        too_few_: Why nothing was learned of class biases; empty if it was.
        rehearsal_: The fitted :class:`Rehearsal`, if the prior is unknown.
        panels_: The panels for few rows, then those for many, if they were learned.
        level_: The level it was fitted for.
        map_: What the last target's logits go through.
        shift_: Added to the log-odds of ``confidence``, after ``slope_``.
        slope_: Of those log-odds.
    """

    name: ClassVar[str] = "realign"
    uses_target: ClassVar[bool] = True
    uses_bank: ClassVar[bool] = True
    corrects: ClassVar[bool] = True

    temperature_: float
    prior_: NDArray[np.float64]
    n_calibration_: int
    too_few_: str
    rehearsal_: Rehearsal | None
    panels_: tuple[Panel, ...]
    level_: float
    map_: Vector | None
    shift_: float
    slope_: float

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
        self.prior_, self.n_calibration_ = counts / counts.sum(), len(clean.labels)
        where = f"the clean set ({clean.name})"
        fitted = fit_map("temperature", clean.logits, clean.labels, where=where)
        self.temperature_ = float(fitted.temperature_)
        self.rehearsal_, self.panels_, self.too_few_ = None, (), ""
        self.map_, self.shift_, self.slope_ = None, 0.0, 1.0
        if not isinstance(self.prior, str):
            self.prior_ = _check_shares(self.prior, bank.n_classes)
        elif check_choice(self.prior, _PRIORS, name="prior") == "unknown":
            self.rehearsal_ = Rehearsal(level=self.level_, seed=seed)._fit_checked(bank, None)
            self.too_few_ = _too_few(bank)
            if not self.too_few_:
                sets, labels = [s.logits for s in bank], [s.labels for s in bank]
                self.panels_ = learn(
                    sets, labels, ladders_of(bank), self.temperature_, self.prior_, seed=seed
                )

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        n, k = logits.shape
        rows = logits
        if n > _MOST_ROWS:
            rows = logits[np.linspace(0, n - 1, _MOST_ROWS).astype(np.intp)]
        a = np.ascontiguousarray(rows.T, np.float64) / self.temperature_
        w = np.full(len(rows), 1 / len(rows))
        self.shift_, self.slope_ = 0.0, 1.0
        if self.rehearsal_ is None:
            self._set_map(*same_prior(a, w, self.prior_, n, self.n_calibration_))
            return self._select(logits, rows, tuple(few_rows(n)), {})
        known = self.rehearsal_._adapt(logits, None)
        assert known.temperature is not None
        flags = tuple(flag for flag in known.flags if flag.code in _SHARED)
        if not self.panels_ or known.has("like-clean"):
            self._set_map(self.temperature_ / known.temperature, np.zeros(k))
            if self.too_few_:
                flags = (*flags, Flag("too-few", self.too_few_))
            return self._select(logits, rows, flags, {})
        found = consult(self.panels_, a, w, self.prior_, n, self.n_calibration_)
        far = min((known.details["from_clean"] - 1) / (_FAR - 1), 1.0)
        self._set_map(1 + far * (found.scale - 1), far * found.bias)
        self.shift_, self.slope_ = far * found.shift, 1 + far * (found.slope - 1)
        own = self._own(self._apply(rows), rows)
        rehearsed = float(p_max(rows, known.temperature).mean())
        mean = (1 - _REHEARSED) * float(own.mean()) + _REHEARSED * rehearsed
        self.shift_ += shift_to_mean(own, mean)
        names = ("weight_same_prior", "weight_moved_prior", "weight_plain")
        details = dict(zip(names, found.weights.tolist(), strict=True))
        return self._select(logits, rows, (*flags, *_doubts(details)), details, found.errors)

    def _set_map(self, scale: float, bias: Array) -> None:
        self.map_ = Vector()
        self.map_.weight_ = np.full(len(bias), scale / self.temperature_)
        self.map_.intercept_, self.map_.n_classes_ = bias, len(bias)
        self.map_.status_ = FitStatus("converged")

    def _select(
        self,
        logits: Logits,
        rows: Logits,
        flags: tuple[Flag, ...],
        details: dict[str, float],
        errors: Array | None = None,
    ) -> Selection:
        assert self.map_ is not None
        corrected = self._apply(rows)
        estimated = {
            "estimated_accuracy": float(self._own(corrected, rows).mean()),
            "corrected_accuracy": float(corrected.max(axis=1).mean()),
        }
        found = dict(estimated)
        if errors is not None:
            tails = [(1 + self.level_) / 2, (1 - self.level_) / 2]
            for (name, value), error in zip(estimated.items(), errors, strict=True):
                low, high = np.clip(value - np.quantile(error, tails), 0, 1).tolist()
                found |= {f"{name}_low": min(low, value), f"{name}_high": max(high, value)}
        changed = corrected.argmax(axis=1) != rows.argmax(axis=1)
        return Selection(
            self.name,
            temperature=1 / float(self.map_.weight_[0]),
            n_target=len(logits),
            mean_confidence=float(p_max(logits).mean()),
            n_sets=None if self.rehearsal_ is None else len(self.rehearsal_.ladder_),
            details={
                **found,
                "changed": float(changed.mean()),
                "largest_bias": float(np.abs(self.map_.intercept_).max()),
                **details,
            },
            flags=flags,
        )

    def _apply(self, logits: Logits) -> Probs:
        assert self.map_ is not None
        temperature = 1 / float(self.map_.weight_[0])
        return softmax(logits + temperature * self.map_.intercept_, temperature)

    def _confidence(self, z: Logits) -> NDArray[np.float64]:
        return self._own(self._apply(z), z)

    def _own(self, corrected: Probs, logits: Logits) -> NDArray[np.float64]:
        """Probability that the model's own prediction is correct."""
        own = corrected[np.arange(len(logits)), logits.argmax(axis=1)]
        if self.shift_ == 0 and self.slope_ == 1:
            return own
        return sigmoid(self.shift_ + self.slope_ * log_odds(own))

    def after_load(self) -> None:
        """Reject a file whose parts do not belong together."""
        super().after_load()
        if not hasattr(self, "n_classes_"):
            return
        if self.prior_.shape != (self.n_classes_,) or not (self.prior_ > 0).all():
            raise InputError(f"it must have a class prior of {self.n_classes_} positive shares")
        if (self.selection_ is None) != (self.map_ is None):
            raise InputError("it must have a map if it was adapted, and only then")
        if self.map_ is not None and self.map_.n_classes_ != self.n_classes_:
            raise InputError(f"its map must be of {self.n_classes_} classes")
        sizes = tuple(panel.size for panel in self.panels_)
        wanted = tuple(size for size in SIZES for _ in range(PANELS))
        if self.panels_ and (self.rehearsal_ is None or sizes != wanted):
            raise InputError(f"it must have panels of {wanted} rows, and a rehearsal")


def _too_few(bank: SurrogateBank) -> str:
    """Why class biases cannot be learned on this bank; empty if they can."""
    least, n = _ROWS_PER_CLASS * bank.n_classes, len(bank.clean.labels)
    named = len({s.corruption for s in bank} - {None})
    if named < _CORRUPTIONS:
        return (
            f"class biases are learned from {_CORRUPTIONS} or more corruptions, and the bank names "
            f"{named}: this is Rehearsal's temperature, and predictions stay as they are."
        )
    if n < least:
        return (
            f"class biases are learned from {_ROWS_PER_CLASS} or more calibration rows a class, "
            f"and there are {n} for {bank.n_classes} classes: this is Rehearsal's temperature, and "
            "predictions stay as they are."
        )
    return ""


def _check_shares(prior: object, k: int) -> Array:
    try:
        shares = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    if shares.shape != (k,) or not (shares >= 0).all() or not 0.99 < shares.sum() < 1.01:
        raise InputError(
            f'prior must be "unknown", "calibration" or the shares of the {k} classes, which sum '
            f"to 1; got {prior!r:.80}."
        )
    # A class that is said to be absent stays possible: no finite bias would remove it.
    shares = np.maximum(shares, 1e-4)
    return np.asarray(shares / shares.sum())


def _doubts(details: dict[str, float]) -> Iterator[Flag]:
    if details["weight_plain"] > 0.5:
        yield Flag(
            "not-corrected",
            "the outputs fit a biased network as well as a moved class prior, so predictions stay "
            "mostly as they are. If you know the class prior, pass it as prior=.",
        )
