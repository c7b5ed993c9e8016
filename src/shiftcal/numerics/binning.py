"""Samples in bins of confidence, sums over bins, and calibration errors made of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.blocks import in_parts, kernel_for, kernels
from shiftcal.types import Confidence, Correct

# --------------------------------------------------------------------------------------
# Samples put into bins by confidence: the sums every binned calibration error is made of.
#
# Nothing is sorted as a whole. The cuts between bins of equal size fall into a few narrow cells of
# a histogram. All other cells lie inside one bin and are summed as the rows come; only the samples
# of those few are kept apart and sorted. Sums are of confidences rounded to multiples of 2**-46.
# --------------------------------------------------------------------------------------

# Rows in a part. Fixed, so that nothing depends on the number of threads.
_PART = 1 << 19


class BinSums(NamedTuple):
    """What is known of each of ``m`` bins, from the least confident to the most.

    Attributes:
        counts: ``(m,)`` number of samples.
        confidence: ``(m,)`` sum of their confidence.
        correct: ``(m,)`` sum of their correctness. Not always whole: where samples of equal
            confidence fall into two bins, each takes its share of the group's mean.
        lower: ``(m,)`` lower edge.
        upper: ``(m,)`` upper edge.
    """

    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def equal_size_bins(
    confidence: Confidence, correct: Correct, n_bins: int, *, whole_ties: bool = False
) -> BinSums:
    """Bins of equally many samples, as ``np.array_split`` cuts the sorted confidences.

    Sizes differ by at most one, every sample is in one bin, and there are no more bins than
    samples. The order of the rows never matters, to the last bit: inside a group of equal
    confidence the correctness of each is the group's mean. Edges are the least and the greatest
    confidence in the bin.

    Args:
        confidence: ``(n,)``.
        correct: ``(n,)``.
        n_bins: How many bins are wanted.
        whole_ties: Never cut a group of equal confidence: a cut inside one moves to its upper end,
            and bins that lose all their rows are left out.
    """
    c, r = np.ascontiguousarray(confidence), np.ascontiguousarray(correct)
    n, m = len(c), min(n_bins, len(c))
    # Cells have equal exponent and first bits of 1 - confidence; more rows make them narrower.
    cells = (53 << min(max(n.bit_length() - 9, 0), 8)) + 2
    counts = np.zeros((-(-n // _PART), cells), np.int64)
    count_cells, sum_by_cell = kernel_for("count_cells", c), kernel_for("sum_by_cell", c)
    _by_part(lambda i, rows: count_cells(c[rows], counts[i]), n)
    ends = equal_size_cuts(n, m)[1:].copy()
    slots, bins = np.empty(cells, np.int32), np.empty(m + 1, np.int64)
    places, needed = np.empty(m, np.int64), np.empty(len(counts) + 1, np.int64)
    kernels.place_cuts(counts, ends, whole_ties, slots, bins, places, needed)
    raw = np.zeros((len(counts), 3, 2 * needed[0]), np.int64)
    bins, stops = bins[: needed[0]], needed[1:].cumsum()
    keys = np.empty(stops[-1], np.int64)
    _by_part(
        lambda i, rows: sum_by_cell(
            c[rows], r[rows], slots, raw[i], keys[stops[i] - needed[1 + i] : stops[i]]
        ),
        n,
    )
    keys.sort()
    if whole_ties:
        # Rows of equal confidence share a cell, so cuts move among the rows that are kept apart.
        moved = np.searchsorted(keys, keys[places - 1] | 1, side="right")
        held = np.diff(moved, prepend=0) > 0
        ends, places = (ends + moved - places)[held], moved[held]
        bins[1:] = (held.cumsum() - 1)[bins[1:]]
    sums = np.empty((4, len(ends)))
    kernels.sum_bins(keys, places, raw, bins, sums)
    ends[1:] -= ends[:-1].copy()
    return BinSums(ends, *sums)


def equal_width_bins(confidence: Confidence, correct: Correct, n_bins: int) -> BinSums:
    """Bins ``(i / m, (i + 1) / m]`` of equal width on [0, 1]; the first holds 0 too.

    The order of the rows never matters, to the last bit.

    Args:
        confidence: ``(n,)``.
        correct: ``(n,)``.
        n_bins: How many bins there are; some may be empty.
    """
    c, r = np.ascontiguousarray(confidence), np.ascontiguousarray(correct)
    raw = np.zeros((-(-len(c) // _PART), 3, 2 * n_bins), np.int64)
    sum_by_width = kernel_for("sum_by_width", c)
    _by_part(lambda i, rows: sum_by_width(c[rows], r[rows], raw[i]), len(c))
    counts, high, low = raw.sum(axis=0)
    sums = high * 2.0**-22 + low * 2.0**-46
    edges = np.linspace(0, 1, n_bins + 1)
    # Wrong and correct samples in turn.
    counts, sums = counts.reshape(-1, 2), sums.reshape(-1, 2).sum(axis=1)
    return BinSums(counts.sum(axis=1), sums, counts[:, 1].astype(float), edges[:-1], edges[1:])


def _by_part(work: Callable[[int, slice], None], n: int) -> None:
    """Call ``work(i, rows)`` for every part ``i`` of ``n`` rows."""

    def some(first: int, last: int) -> None:
        for i in range(first, last):
            work(i, slice(i * _PART, (i + 1) * _PART))

    in_parts(some, -(-n // _PART), least=2)


# --------------------------------------------------------------------------------------
# Rows gathered into groups of equal (or nearly equal) confidence, in order of confidence.
#
# A group is all a rank-based metric may know of its rows: rows of equal confidence have no order
# among themselves, so whatever is cut inside a group is cut as if its rows were spread evenly. That
# makes every such metric independent of the order in which rows come, and lets a table of cells
# stand for the rows it counted.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """Sums over groups of rows, ascending in confidence; no group is empty.

    Attributes:
        count: Rows in each group.
        confidence: Sum of their confidences.
        correct: Number of them that are correct.
    """

    count: NDArray[np.int64]
    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.count.sum())


def tie_groups(confidence: Confidence, correct: Correct) -> Groups:
    """The groups of exactly equal confidence."""
    # The bits of non-negative numbers are in the numbers' order; adding 0 makes -0 such a one.
    bits = (confidence.astype(np.float64) + 0.0).view(np.int64)
    keys = np.sort((bits << 1) | correct)
    c = (keys >> 1).view(np.float64)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(c)) + 1])
    count = np.diff(starts, append=len(c))
    return Groups(
        count=count,
        confidence=c[starts] * count,
        correct=np.add.reduceat(keys & 1, starts).astype(np.float64),
    )


@functools.lru_cache(maxsize=16)  # a bootstrap asks for the same thousands of times
def equal_size_cuts(n: int, n_bins: int) -> NDArray[np.int64]:
    """Ranks ``0 = a_0 < a_1 < ... = n`` between bins whose sizes differ by one at the most.

    The first ``n mod n_bins`` bins have the extra row. With fewer rows than bins, every row is a
    bin of its own.
    """
    m = min(n, n_bins)
    size, extra = divmod(n, m)
    i = np.arange(m + 1)
    cuts = i * size + np.minimum(i, extra)
    cuts.flags.writeable = False
    return cuts


def sums_between(
    count: NDArray[Any], sums: NDArray[Any], cuts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sums over the rows between neighbouring ranks, a group that is cut being spread evenly.

    Args:
        count: ``(g,)`` rows in each group, none zero.
        sums: ``(g,)`` what is summed, per group.
        cuts: ``(m + 1,)`` ranks from 0 to the number of rows.
    """
    ranks = np.concatenate([[0], np.cumsum(count)])
    running = np.concatenate([[0], np.cumsum(sums)])
    return np.diff(np.interp(cuts, ranks, running))


def largest_residual(groups: Groups) -> float:
    """``max_k |sum_{i <= k} (c_i - r_i)| / n`` over the ends of the groups."""
    path = np.cumsum(groups.confidence - groups.correct)
    return float(np.abs(path).max()) / groups.n


# --------------------------------------------------------------------------------------
# The area under the risk-coverage curve, from sums over groups of equal confidence.
# --------------------------------------------------------------------------------------


def area_under_risk(groups: Groups) -> float:
    """``1/n sum_{i=1}^n (errors among the i most confident rows) / i``.

    Inside a group of equal confidence it is the expected value over all orders of its rows: after
    ``a`` rows with ``E`` errors, a group of ``m`` rows with error rate ``q`` adds
    ``sum_{j=1}^m (E + q j) / (a + j) = q m + (E - q a)(H(a + m) - H(a))``, where ``H`` are the
    harmonic numbers.
    """
    count = groups.count[::-1].astype(np.float64)
    errors = count - groups.correct[::-1]
    rate = errors / count
    before = np.cumsum(count) - count
    errors_before = np.cumsum(errors) - errors
    area = rate * count + (errors_before - rate * before) * _harmonic_step(before, count)
    return float(area.sum() / count.sum())


def _harmonic_step(a: NDArray[np.float64], m: NDArray[np.float64]) -> NDArray[np.float64]:
    """``1/(a + 1) + ... + 1/(a + m)``."""
    step = 1.0 / (a + 1.0)
    several = m > 1
    if several.any():
        from scipy.special import digamma

        a, m = a[several], m[several]
        step[several] = digamma(a + m + 1.0) - digamma(a + 1.0)
    return step


# --------------------------------------------------------------------------------------
# Calibration errors as functions of the sums over bins.
# --------------------------------------------------------------------------------------


def expected_error(bins: BinSums) -> float:
    """``sum_b n_b/n |conf_b - acc_b|``."""
    return float(np.abs(bins.confidence - bins.correct).sum() / bins.counts.sum())


def largest_error(bins: BinSums) -> float:
    """``max_b |conf_b - acc_b|`` over the bins that hold anything."""
    held = bins.counts > 0
    gap = np.abs(bins.confidence[held] - bins.correct[held]) / bins.counts[held]
    return float(gap.max())


def debiased_error(bins: BinSums) -> float:
    """Root of ``sum_b n_b/n [(conf_b - acc_b)^2 - acc_b (1 - acc_b) / (n_b - 1)]``, least 0.

    Bins of fewer than two rows have no variance to subtract and add nothing.
    """
    held = bins.counts > 1
    if not held.any():
        return 0.0
    count = bins.counts[held]
    accuracy = bins.correct[held] / count
    square = (bins.confidence[held] / count - accuracy) ** 2
    variance = accuracy * (1.0 - accuracy) / (count - 1)
    total = float((count * (square - variance)).sum() / bins.counts.sum())
    return float(np.sqrt(max(total, 0.0)))


# --------------------------------------------------------------------------------------
# Smooth calibration error (Błasiok and Nakkiran, 2023), on a grid.
#
# Residuals ``(c_i - r_i) / n`` are masses at the points ``c_i``. Smoothing with a Gaussian that is
# reflected at 0 and 1 gives a density ``s_σ``, and ``smECE_σ = ∫ |s_σ|``. It falls as ``σ`` grows,
# so there is one ``σ`` with ``smECE_σ = σ``: that is the smooth calibration error.
# --------------------------------------------------------------------------------------

# Grid points per bandwidth: the grid then widens the kernel by less than 1 part in 10,000.
_POINTS_PER_SIGMA = 64
_FIRST_GRID = 1 << 12
_LAST_GRID = 1 << 20
# Rows handled in one go, so that they stay in the processor's cache.
_BLOCK = 1 << 14


def smooth_error(location: NDArray[Any], residual: NDArray[np.float64]) -> float:
    """The fixed point ``σ = smECE_σ`` for masses ``residual`` at points ``location``.

    Args:
        location: ``(m,)`` points in [0, 1].
        residual: ``(m,)`` masses: ``(c - r) / n`` per row, or their sums over rows that are near.
    """
    m = _FIRST_GRID
    while True:
        sigma = _fixed_point(deposit(location, residual, m))
        if sigma * m >= _POINTS_PER_SIGMA or m >= _LAST_GRID or sigma == 0.0:
            return sigma
        wanted = _POINTS_PER_SIGMA / sigma if sigma > 0 else _LAST_GRID
        m = min(_LAST_GRID, max(2 * m, 1 << int(np.ceil(np.log2(wanted)))))


def deposit(location: NDArray[Any], mass: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    """Masses on the grid ``(j + 1/2) / m``, each shared linearly by its two neighbours.

    What lies outside the outermost points goes to them whole, as its mirror image would.
    """
    grid = np.zeros(m + 1)  # the point past the last only ever gets a share of zero
    for start in range(0, len(location), _BLOCK):
        position = location[start : start + _BLOCK].astype(np.float64)
        position *= m
        position -= 0.5
        np.clip(position, 0, m - 1, out=position)
        left = position.astype(np.intp)
        here = mass[start : start + _BLOCK]
        share = (position - left) * here
        np.add.at(grid, left, here - share)
        np.add.at(grid, left + 1, share)
    return grid[:m]


def _fixed_point(grid: NDArray[np.float64]) -> float:
    """``σ`` with ``sum |reflected Gaussian_σ * grid| = σ``."""
    from scipy.fft import dct, idct
    from scipy.optimize import brentq

    # On functions reflected at both ends a Gaussian acts on each cosine by itself.
    cosines = dct(grid, type=2)
    decay = -0.5 * (np.pi * np.arange(len(grid))) ** 2

    def excess(sigma: float) -> float:
        smoothed = idct(cosines * np.exp(decay * sigma**2), type=2)
        return float(np.abs(smoothed).sum()) - sigma

    at_one = excess(1.0)
    if at_one >= 0:  # every row as wrong as can be
        return 1.0
    if float(np.abs(grid).sum()) == 0.0:
        return 0.0
    return float(brentq(excess, 0.0, 1.0, xtol=1e-10, rtol=1e-10))
