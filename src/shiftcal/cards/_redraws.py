"""Bootstrap intervals of several metrics of several sets, from one lot of draws.

The intervals are those of :func:`shiftcal.metrics.bootstrap` with the same seed, to rounding. That
draws anew for every metric and sorts anew for every draw; here a draw is counted once, as how often
each row came, and serves all metrics of all sets with as many rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels, Probs
from shiftcal.cards.parts import METRICS, Judging, Measure
from shiftcal.numerics.binning.groups import equal_size_cuts
from shiftcal.numerics.bootstrap import cautious_interval, reflected_interval
from shiftcal.numerics.losses import hits, log_losses, square_losses

# Metric to the range it lies in. ECE is binned, the others are means of the rows.
MEANS = {"accuracy": (0.0, 1.0), "nll": (0.0, float("inf")), "brier": (0.0, 2.0)}
# Counts held at once.
_BLOCK = 1 << 21


@dataclass(frozen=True)
class Judged:
    """Predictions for one set, as far as the metrics need them.

    Attributes:
        confidence: ``(n,)`` of the predicted class.
        rows: ``(n, 3)`` numbers whose means are the metrics of :data:`MEANS`.
    """

    confidence: NDArray[np.float64]
    rows: NDArray[np.float64]

    @classmethod
    def of(cls, probs: Probs, labels: Labels) -> Judged:
        """From probabilities ``(n, k)`` and labels ``(n,)``."""
        losses = (hits(probs, labels), log_losses(probs, labels), square_losses(probs, labels))
        return cls(probs.max(axis=1), np.column_stack(losses).astype(np.float64))

    @classmethod
    def empty(cls, n: int) -> Judged:
        """Room for ``n`` rows."""
        return cls(np.empty(n), np.empty((n, len(MEANS))))

    def put(self, where: NDArray[np.bool_], part: Judged) -> None:
        """Fill the rows ``where`` ``(n,)`` is true."""
        self.confidence[where], self.rows[where] = part.confidence, part.rows


class _ByRank:
    """Rows in order of confidence, ready for the ECE of any redraw of them."""

    def __init__(self, judged: Judged, n_bins: int) -> None:
        confidence = judged.confidence
        self._confidence, self._gap = confidence, confidence - judged.rows[:, 0]
        self._order = np.argsort(confidence, kind="stable")
        self._last = np.append(np.diff(confidence[self._order]) > 0, True)
        self._cuts = equal_size_cuts(len(confidence), n_bins)

    def errors(self, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """ECE ``(b,)`` of redraws in which the rows come so many ``times`` ``(b, n)``."""
        from shiftcal.numerics.binning.redraw_kernels import redrawn_errors

        found = np.empty(len(times))
        redrawn_errors(self._gap, self._order, self._last, self._cuts, times, found)
        return found

    def if_calibrated(self, judging: Judging) -> NDArray[np.float64]:
        """ECE of the same confidences with truths drawn as they say, many times over."""
        from shiftcal.numerics.binning.redraw_kernels import calibrated_errors

        rng = np.random.default_rng([judging.seed, 1])
        n, found = len(self._order), np.empty(judging.n_resamples)
        for some in _blocks(n, judging):
            uniform = rng.random((some.stop - some.start, n))
            calibrated_errors(
                self._confidence, self._order, self._last, self._cuts, uniform, found[some]
            )
        return found


def measured(sets: Sequence[Judged], judging: Judging) -> list[dict[str, Measure]]:
    """The metrics of every set, with intervals.

    Args:
        sets: Predictions; they may differ in their rows.
        judging: How.
    """
    found: list[dict[str, Measure]] = [{} for _ in sets]
    for n in dict.fromkeys(len(s.confidence) for s in sets):
        which = [j for j, s in enumerate(sets) if len(s.confidence) == n]
        told = _of_one_size([sets[j] for j in which], judging)
        for j, measures in zip(which, told, strict=True):
            found[j] = measures
    return found


def _of_one_size(sets: Sequence[Judged], judging: Judging) -> Iterator[dict[str, Measure]]:
    n = len(sets[0].confidence)
    ranked = [_ByRank(s, judging.n_bins) for s in sets]
    once = np.ones((1, n), dtype=np.int64)
    values = [float(one.errors(once)[0]) for one in ranked]
    if judging.n_resamples == 0 or n < 2:
        for s, value in zip(sets, values, strict=True):
            plain = dict(zip(MEANS, map(Measure, s.rows.mean(axis=0).tolist()), strict=True))
            yield _in_order({**plain, "ece": Measure(value)})
        return
    means = np.empty((len(sets), judging.n_resamples, len(MEANS)))
    errors = np.empty((len(sets), judging.n_resamples))
    for some, times in _counted(n, judging):
        weights = times.astype(np.float64)
        for j, (s, one) in enumerate(zip(sets, ranked, strict=True)):
            means[j, some] = weights @ s.rows / n
            errors[j, some] = one.errors(times)
    for j, (s, one) in enumerate(zip(sets, ranked, strict=True)):
        noise = partial(one.if_calibrated, judging)
        ends = cautious_interval(values[j], errors[j], noise, level=judging.level, upper=1.0)
        told = _means(s.rows.mean(axis=0).tolist(), means[j], judging.level)
        yield _in_order({**told, "ece": Measure(values[j], *ends)})


def _means(values: list[float], draws: NDArray[np.float64], level: float) -> dict[str, Measure]:
    found = {}
    for name, value, drawn in zip(MEANS, values, draws.T, strict=True):
        lower, upper = MEANS[name]
        ends = reflected_interval(value, drawn, level=level, lower=lower, upper=upper)
        found[name] = Measure(value, *ends)
    return found


def _in_order(measures: dict[str, Measure]) -> dict[str, Measure]:
    return {name: measures[name] for name in METRICS}


def _counted(n: int, judging: Judging) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """How often every row comes in some of the draws, ``(b, n)``, until all were there."""
    rng = np.random.default_rng(judging.seed)
    for some in _blocks(n, judging):
        drawn = [rng.integers(0, n, size=n) for _ in range(some.stop - some.start)]
        yield some, np.array([np.bincount(d, minlength=n) for d in drawn])


def _blocks(n: int, judging: Judging) -> Iterator[slice]:
    """Draws that are held at once."""
    most = max(1, _BLOCK // n)
    for start in range(0, judging.n_resamples, most):
        yield slice(start, min(start + most, judging.n_resamples))
