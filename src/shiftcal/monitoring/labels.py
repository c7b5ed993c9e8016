"""Late labels: what predictions came to, next to what was estimated of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from shiftcal.errors import InputError
from shiftcal.types import Labels

# Bins of equal width in confidence, for ECE.
_BINS = 15
# Sums are whole numbers of 2**-32, so the order of labels within a block changes nothing.
_UNIT = 1 << 32
# Fewer labels say nothing.
_FEWEST = 100
# Most chance of a false alarm at one look.
_MOST_CHANCE = 0.05
_LARGEST = 1 << 62


@dataclass(frozen=True)
class Realised:
    """Accuracy of the last labelled predictions, next to its estimate.

    All numbers are of the same ``n`` predictions, those whose labels came last.
    Without any, means are NaN.

    Attributes:
        n: Labelled predictions, about as many as the monitor's window has rows.
        accuracy: Their accuracy.
        low: Lower end of its Clopper-Pearson interval.
        high: Upper end.
        estimated: Mean accuracy estimated for them without labels.
        estimated_low: Mean lower end of those estimates.
        estimated_high: Mean upper end.
        mean_confidence: Their mean calibrated confidence.
        ece: Their ECE, 15 bins of equal width.
        expected_ece: ECE that as many perfectly calibrated predictions show by chance.
        delay: Mean rows of the stream between a prediction and its label.
        agree: Whether accuracy and estimate agree: False from ``labels-disagree`` on.
        labelled: Labels so far.
        unknown: Labels so far without a stored prediction.
        waiting: Predictions that wait for their labels.
    """

    n: int
    accuracy: float
    low: float
    high: float
    estimated: float
    estimated_low: float
    estimated_high: float
    mean_confidence: float
    ece: float
    expected_ece: float
    delay: float
    agree: bool
    labelled: int
    unknown: int
    waiting: int

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON; NaN becomes ``None``."""
        return {name: None if math.isnan(value) else value for name, value in asdict(self).items()}


class Turn(NamedTuple):
    """Labels and estimates began, or ceased, to disagree.

    Attributes:
        agree: Whether they agree now.
        accuracy: Realised.
        bound: The end of the estimate's interval on that side.
    """

    agree: bool
    accuracy: float
    bound: float


@dataclass
class Ledger:
    """Predictions that wait for labels, and sums over those that have them.

    Attributes:
        most: Most predictions kept; the oldest is forgotten first.
        ring: ``(b, 49)`` sums of blocks of labelled predictions, the newest one growing: per bin
            their number, the correct ones, and confidence; then delay and the estimate's three.
        waiting: ``(row, predicted, confidence)`` by id, oldest first.
        estimates: ``[value, low, high]`` of the estimator by number of the window of rows.
        labelled: Labels that found their prediction.
        unknown: Labels that did not.
        agree: Whether labels and estimates agree.
        near: Looks in a row at which they did again.
    """

    most: int
    ring: NDArray[np.int64]
    waiting: dict[str, Any] = field(default_factory=dict)
    estimates: dict[str, Any] = field(default_factory=dict)
    labelled: int = 0
    unknown: int = 0
    agree: bool = True
    near: int = 0

    @classmethod
    def fresh(cls, blocks: int, most: int) -> Self:
        """One without any prediction."""
        return cls(most, np.zeros((blocks, 3 * _BINS + 4), np.int64))

    def copy(self) -> Self:
        """One that later labels do not change."""
        waiting = {key: tuple(entry) for key, entry in self.waiting.items()}
        return replace(self, ring=self.ring.copy(), waiting=waiting, estimates=dict(self.estimates))

    def check(self, fresh: Ledger, k: int) -> None:
        """Raise for values that no stream leads to.

        Raises:
            InputError: That names the part.
        """
        for name in ("ring", "labelled", "unknown", "agree", "near", "most"):
            value, start = getattr(self, name), getattr(fresh, name)
            good = type(value) is type(start) and np.shape(value) == np.shape(start)
            good = good and np.asarray(value).dtype == np.asarray(start).dtype
            if not (good and bool(0 <= np.min(value) <= np.max(value) <= _LARGEST)):
                raise _damaged(name, value)
        for entry in self.waiting.values():
            row, predicted, confidence = entry
            if not (type(row) is type(predicted) is int and row >= 0 and 0 <= predicted < k):
                raise _damaged("waiting", entry)
            if not (type(confidence) is float and 0 <= confidence <= 1):
                raise _damaged("waiting", entry)
        for entry in self.estimates.values():
            if not (len(entry) == 3 and all(0 <= value <= 1 for value in entry)):
                raise _damaged("estimates", entry)

    def keep(
        self,
        ids: Sequence[object],
        first: int,
        predicted: NDArray[np.intp],
        confidence: NDArray[np.float64],
        *,
        window: int,
    ) -> None:
        """Keep predictions of rows from ``first`` on for their labels."""
        waiting = self.waiting
        rows = zip(ids, predicted.tolist(), confidence.tolist(), strict=True)
        for row, (name, label, value) in enumerate(rows, start=first):
            key = str(name)
            waiting.pop(key, None)  # an id that comes again is that of the later row
            waiting[key] = (row, label, value)  # no list: the garbage collector passes over it
        for key in [key for key, _ in zip(waiting, range(len(waiting) - self.most), strict=False)]:
            del waiting[key]
        oldest = next(iter(waiting.values()))[0] // window
        for key in list(self.estimates)[:-1]:  # the last serves rows whose window is not full yet
            if int(key) < oldest:
                del self.estimates[key]

    def judge(
        self,
        ids: Sequence[object],
        labels: Labels,
        *,
        rows: int,
        window: int,
        block: int,
        false_alarms: float,
        patience: int,
        level: float,
    ) -> list[Turn]:
        """Compare predictions with their labels; returns where they began or ceased to disagree."""
        turns = []
        for name, label in zip(ids, labels.tolist(), strict=True):
            entry = self.waiting.pop(str(name), None)
            if entry is None:
                self.unknown += 1
                continue
            row, predicted, confidence = entry
            sums = self.ring[self.labelled // block % len(self.ring)]
            if self.labelled % block == 0:
                sums[:] = 0
            units = round(confidence * _UNIT)
            b = min(int(confidence * _BINS), _BINS - 1)
            sums[b] += 1
            sums[_BINS + b] += predicted == label
            sums[2 * _BINS + b] += units
            sums[-4] += max(rows - row, 0)
            estimate = self.estimates.get(str(row // window))
            if estimate is None and self.estimates:
                estimate = next(reversed(self.estimates.values()))
            sums[-3:] += [round(v * _UNIT) for v in estimate] if estimate else units
            self.labelled += 1
            if self.labelled % block == 0:
                turns += self._look(min(false_alarms * block / 1e5, _MOST_CHANCE), patience, level)
        return turns

    def _look(self, chance: float, patience: int, level: float) -> list[Turn]:
        """Change ``agree`` at the end of a block."""
        if self.ring[:, :_BINS].sum() < _FEWEST:
            return []
        told = self.realised(1 - chance if self.agree else level)
        apart = told.high < told.estimated_low or told.low > told.estimated_high
        self.near = 0 if apart or self.agree else self.near + 1
        if (self.agree and apart) or self.near >= patience:
            self.agree, self.near = not self.agree, 0
            middle = (told.estimated_low + told.estimated_high) / 2
            bound = told.estimated_low if told.accuracy < middle else told.estimated_high
            return [Turn(self.agree, told.accuracy, bound)]
        return []

    def realised(self, level: float) -> Realised:
        """What the labelled predictions of the ring came to."""
        sums = self.ring.sum(axis=0)
        counts, correct, confidence = sums[: 3 * _BINS].reshape(3, _BINS)
        n, hits = int(counts.sum()), int(correct.sum())
        totals = confidence / _UNIT
        mean = totals / np.maximum(counts, 1)
        # A normal deviate is sqrt(2 / pi) from zero in the mean.
        noise = np.sqrt(2 / np.pi * counts * mean * (1 - mean))
        sums_of = {
            "accuracy": hits,
            "estimated": sums[-3] / _UNIT,
            "estimated_low": sums[-2] / _UNIT,
            "estimated_high": sums[-1] / _UNIT,
            "mean_confidence": totals.sum(),
            "ece": np.abs(correct - totals).sum(),
            "expected_ece": noise.sum(),
            "delay": sums[-4],
        }
        return Realised(
            n=n,
            **{name: float(value) / n if n else math.nan for name, value in sums_of.items()},
            low=float(betaincinv(hits, n - hits + 1, (1 - level) / 2)) if hits else 0.0,
            high=float(betaincinv(hits + 1, n - hits, (1 + level) / 2)) if hits < n else 1.0,
            agree=self.agree,
            labelled=self.labelled,
            unknown=self.unknown,
            waiting=len(self.waiting),
        )


def _damaged(name: str, value: object) -> InputError:
    return InputError(
        "a monitor's state is damaged, or that of another monitor: its "
        f"{name} cannot be {' '.join(repr(value).split()):.60}."
    )
