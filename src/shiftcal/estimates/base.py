"""The contract of an accuracy estimator."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self, final

from sklearn.base import clone

from shiftcal import _persistence
from shiftcal._checks import check_fraction
from shiftcal._estimator import Estimator
from shiftcal._types import Flag, Logits
from shiftcal.errors import FitWarning, InputError, ShiftcalError
from shiftcal.estimates._estimate import AccuracyEstimate, LeftOut, Point, ends, shift_error
from shiftcal.methods._given import given_bank, given_logits
from shiftcal.rehearsals import Grouped
from shiftcal.surrogates import SurrogateBank

_NO_SHIFT_ERROR = Flag(
    "no-shift-error",
    "no set of the bank could be left out to see how far the estimate is off under shift: the "
    "interval covers sampling only. Fit on a bank of several sets.",
)


class AccuracyEstimator(Estimator, ABC):
    """An estimator of accuracy: ``fit`` on a bank, ``estimate`` for an unlabelled target.

    A new estimator is one file in this package: a final subclass with a keyword-only ``__init__``
    that takes at least ``input``, with ``_fit`` and ``_estimate``, and with every learnt attribute
    annotated in the class body. ``estimate`` leaves it as it was.

    The interval is ``value ± sqrt(z² (s² + c²) + t² e²)``, cut at 0 and 1. ``s`` is the standard
    deviation over draws of the target, ``c`` that over draws of the calibration samples; each
    estimator says how it knows them. ``e`` is the error of the estimator itself under shift: every
    corruption of the bank in turn (every set but the clean one, if there is one corruption only)
    is left out, the estimator is fitted on the rest and used on the sets left out, and ``e`` is
    the root mean square of its errors there. z and t are the quantiles ``(1 + level) / 2`` of the
    normal and, since few fits tell ``e``, of Student's distribution with as many degrees of
    freedom as there were fits. It covers targets that are no further from the bank than its
    corruptions are from one another; of a shift of another kind, label shift among them, it knows
    nothing. An estimator that draws what the accuracy may be has the quantiles of its draws
    instead, and says what they cover.

    Attributes:
        uses_bank: Whether it learns from all sets of the bank; else from the clean one only.
        n_classes_: Number of classes, from the columns of the bank.
        class_names_: Their names, if the bank has them.
        left_out_: Every set that was left out, with its accuracy and what was estimated; empty
            for a bank of one set.
    """

    kind: ClassVar[str] = "accuracy-estimator"
    uses_bank: ClassVar[bool] = True

    input: str
    n_classes_: int
    class_names_: tuple[str, ...] | None
    left_out_: tuple[LeftOut, ...]

    @final
    def fit(self, bank: object, labels: object = None) -> Self:
        """Learn how accuracy shows in the outputs, and how well that holds under shift.

        Args:
            bank: A :class:`SurrogateBank`, or the folder of one; or logits ``(n, k)`` of a
                calibration set, with ``labels``, which make a bank of one set.
            labels: ``(n,)``, only with logits.

        Raises:
            InputError: If the input cannot be used, or is of another kind than ``input`` says.
        """
        checked = given_bank(bank, labels, input=self.input, name=self.name())
        self.__dict__.pop("n_classes_", None)  # a failed fit leaves it unfitted, not half fitted
        self._fit(checked)
        self.left_out_ = tuple(self._shift_error(checked))
        self.class_names_ = checked.classes
        self.n_classes_ = checked.n_classes
        return self

    @final
    def estimate(self, logits: object, *, level: float = 0.95) -> AccuracyEstimate:
        """The accuracy of the model on an unlabelled target.

        Args:
            logits: ``(n, k)``, of the kind ``input`` says; or :class:`Scores` of either kind.
            level: Coverage of the interval, strictly between 0 and 1.
        """
        self._require_fitted()
        level = check_fraction(level, name="level")
        z = given_logits(logits, input=self.input, k=self.n_classes_, classes=self.class_names_)
        return self._with_interval(self._estimate(z), len(z), level)

    @final
    def estimate_moments(self, target: Grouped, *, level: float = 0.95) -> AccuracyEstimate:
        """The accuracy on a target of which only sums over its rows are there.

        The value is that of :meth:`estimate` with the rows, to rounding.

        Args:
            target: Sums of the moments of raw softmax rows, with the squares of p_max.
            level: Coverage of the interval, strictly between 0 and 1.

        Raises:
            InputError: If this estimator needs the rows, or they are of other classes.
        """
        self._require_fitted()
        level = check_fraction(level, name="level")
        if (why := self.needs_rows()) is not None:
            raise InputError(f"{self.name()} cannot estimate from sums: {why}.")
        if target.sums.shape[1] != 2 + 2 * self.n_classes_:
            raise InputError(
                f"sums must have the {2 + 2 * self.n_classes_} columns of {self.n_classes_} "
                f"classes; got {target.sums.shape[1]}."
            )
        return self._with_interval(self._estimate_moments(target), target.n, level)

    def needs_rows(self) -> str | None:
        """Why sums of fixed size over the target's rows are not enough; ``None`` if they are."""
        return "it looks at every row of the target at once"

    def _with_interval(self, point: Point, n: int, level: float) -> AccuracyEstimate:
        shift = shift_error(self.left_out_)
        low, high = ends(point, shift, level)
        sampling = {"sampling_sd": point.sampling_sd, "calibration_sd": point.calibration_sd}
        return AccuracyEstimate(
            _in_unit(point.value),
            _in_unit(low),
            _in_unit(high),
            level,
            n,
            self.name(),
            details={**sampling, **shift, **point.details},
            flags=(*point.flags, *([] if shift else [_NO_SHIFT_ERROR])),
        )

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        _persistence.save(self, path)

    @abstractmethod
    def _fit(self, bank: SurrogateBank) -> None:
        """Learn from a checked bank; set every attribute the class itself declares."""

    @abstractmethod
    def _estimate(self, logits: Logits) -> Point:
        """The estimate for a checked target, without changing anything."""

    def _estimate_moments(self, target: Grouped) -> Point:
        """The estimate for the sums of a target, where :meth:`needs_rows` allows it."""
        raise NotImplementedError

    def _shift_error(self, bank: SurrogateBank) -> Iterator[LeftOut]:
        """Errors on the sets of the bank, each estimated by a fit that saw none of its corruption.

        A part of the bank that it cannot be fitted on tells nothing, and is passed over.
        """
        for number, group in enumerate(_groups(bank)):
            try:
                other = self._without(bank, group)
            except ShiftcalError:
                continue
            for j in group:
                out = bank[j]
                estimate = _in_unit(other._estimate(out.logits).value)
                yield LeftOut(number, out.name, out.summary().accuracy, estimate)

    def _without(self, bank: SurrogateBank, group: list[int]) -> AccuracyEstimator:
        if not self.uses_bank:
            return self
        kept = [s for j, s in enumerate(bank) if j not in group]
        other: AccuracyEstimator = clone(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # said once, of the whole bank
            other._fit(SurrogateBank(kept, classes=bank.classes, input=bank.input))
        return other


def _groups(bank: SurrogateBank) -> list[list[int]]:
    """Positions of the sets to be left out together: by corruption, or one by one if it is one."""
    groups: dict[object, list[int]] = {}
    for j, s in enumerate(bank):
        if j:
            groups.setdefault(j if s.corruption is None else s.corruption, []).append(j)
    if len(groups) == 1:
        return [[j] for j in range(1, len(bank))]
    return list(groups.values())


def _in_unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
