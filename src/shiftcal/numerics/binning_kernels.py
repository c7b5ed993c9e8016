"""Compiled passes over confidences. Importing this file imports numba: import it in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics.jit import compiled

# --------------------------------------------------------------------------------------
# Compiled passes over confidences. Importing this file imports numba: only in functions.
#
# Sums are kept in whole numbers, a confidence as its nearest multiple of 2**-46, so that they are
# the same in whatever order the rows come and on however many threads.
# --------------------------------------------------------------------------------------

# Cells of equal exponent and first bits of 1 - confidence: narrow where networks are confident. One
# more at each end, for confidence 1 and for confidences too small to tell from 0.
_BITS = 8
_SHIFT = 52 - _BITS
_FIRST = ((1023 - 53) << _BITS) - 1
CELLS = (53 << _BITS) + 2
# Rows are taken in chunks that stay in the cache, and neighbours are summed apart: a sum cannot
# be added to before it was stored. A lane's 256 rows fill a number's 64 bits and no more: the
# confidence takes the lower 55, the count the upper 9.
_CHUNK = 1024
_LANES = 4
_COUNT = 55
_CONFIDENCE = np.uint64((1 << _COUNT) - 1)
_LOW = np.uint64((1 << 24) - 1)
# Between 64 and 128 the bits of a number count its multiples of 2**-46.
_BASE = 64.0
_ONE_MORE = np.uint64((1 << 64) + (1 << _COUNT) - int(np.float64(_BASE).view(np.uint64)))
_PLAIN = {"error_model": "numpy"}


@compiled(**_PLAIN)
def count_cells(confidence: Any, counts: Any) -> None:
    """Add the number of confidences in every cell, from the least confident, to ``counts``."""
    cells = np.empty(_CHUNK, np.int32)
    lanes = np.zeros((_LANES, CELLS), np.int32)
    for start in range(0, confidence.shape[0], _CHUNK):
        c = confidence[start : start + _CHUNK]
        _cells(c, cells)
        for i in range(c.shape[0]):
            lanes[i & 3, np.uint32(cells[i])] += 1
    for lane in range(_LANES):
        for cell in range(CELLS):
            counts[cell] += lanes[lane, cell]


@compiled(**_PLAIN)
def sum_by_cell(confidence: Any, correct: Any, bin_of_cell: Any, sums: Any, keys: Any) -> None:
    """Add up the samples of each bin; those of cells without a bin are written down one by one.

    Args:
        confidence: ``(n,)``.
        correct: ``(n,)``.
        bin_of_cell: ``(CELLS,)`` in ``0..m-1``, or ``m`` for cells without a bin.
        sums: ``(3, 2 m)``, added to: for every bin the wrong, then the right samples; their count
            and the multiples of 2**-22 and of 2**-46 in the sum of their confidence.
        keys: Gets the bits of a confidence, and after them one bit for correctness.
    """
    slots = np.empty(_CHUNK, np.int32)
    shares = np.empty(_CHUNK, np.uint64)
    lanes = np.zeros((_LANES, sums.shape[1] + 2), np.uint64)
    found = 0
    for start in range(0, confidence.shape[0], _CHUNK):
        c = confidence[start : start + _CHUNK]
        r = correct[start : start + _CHUNK]
        _cells(c, slots)
        _shares(c, shares)
        # Three short loops: as one they take twice as long.
        for i in range(c.shape[0]):
            slots[i] = 2 * bin_of_cell[np.uint32(slots[i])] + r[i]
        for i in range(c.shape[0]):
            lanes[i & 3, np.uint32(slots[i])] += shares[i]
        for i in range(c.shape[0]):
            if slots[i] >= sums.shape[1]:
                bits = np.float64(np.float64(c[i]) + 0.0).view(np.int64)
                keys[found] = (bits << 1) | r[i]
                found += 1
        _move_on(lanes, sums)


@compiled(**_PLAIN)
def sum_by_width(confidence: Any, correct: Any, sums: Any) -> None:
    """Add up the samples of each bin, ``j / m < confidence <= (j + 1) / m``, the first with 0.

    Args:
        confidence: ``(n,)``.
        correct: ``(n,)``.
        sums: ``(3, 2 m)``, as in :func:`sum_by_cell`.
    """
    slots = np.empty(_CHUNK, np.int32)
    shares = np.empty(_CHUNK, np.uint64)
    lanes = np.zeros((_LANES, sums.shape[1]), np.uint64)
    for start in range(0, confidence.shape[0], _CHUNK):
        c = confidence[start : start + _CHUNK]
        _slots(c, correct[start : start + _CHUNK], sums.shape[1] // 2, slots)
        _shares(c, shares)
        for i in range(c.shape[0]):
            lanes[i & 3, np.uint32(slots[i])] += shares[i]
        _move_on(lanes, sums)


@njit(**_PLAIN)
def _cells(confidence: Any, cells: Any) -> None:
    for i in range(confidence.shape[0]):
        bits = np.float64(1.0 - np.float64(confidence[i])).view(np.int64)
        cells[i] = min(CELLS - 1 + _FIRST - (bits >> _SHIFT), CELLS - 1)


@njit(**_PLAIN)
def _slots(confidence: Any, correct: Any, m: Any, slots: Any) -> None:
    # The first guess is rounded, and made such that it is never too low; the edge then decides,
    # rounded as np.linspace rounds it.
    width = 1.0 / m
    scale = m * (1.0 + 2.0**-50)
    for i in range(confidence.shape[0]):
        c = np.float64(confidence[i])
        j = np.floor(c * scale)
        j = j - 1.0 if c <= j * width else j
        slots[i] = 2 * np.int32(min(max(j, 0.0), m - 1.0)) + correct[i]


@njit(**_PLAIN)
def _shares(confidence: Any, shares: Any) -> None:
    for i in range(confidence.shape[0]):
        shares[i] = np.float64(_BASE + np.float64(confidence[i])).view(np.uint64) + _ONE_MORE


@njit(**_PLAIN)
def _move_on(lanes: Any, sums: Any) -> None:
    for lane in range(_LANES):
        for s in range(sums.shape[1]):
            both = lanes[lane, s]
            lanes[lane, s] = 0
            sums[0, s] += np.int64(both >> np.uint64(_COUNT))
            sums[1, s] += np.int64((both & _CONFIDENCE) >> np.uint64(24))
            sums[2, s] += np.int64(both & _LOW)


# --------------------------------------------------------------------------------------
# ECE of many redraws of the same rows, which are sorted once. Imports numba: only in functions.
# --------------------------------------------------------------------------------------


@compiled(**_PLAIN)
def redrawn_errors(gap: Any, order: Any, last: Any, cuts: Any, times: Any, errors: Any) -> None:
    """Write the ECE of every redraw to ``errors``.

    Args:
        gap: ``(n,)`` confidence less correctness of every row.
        order: ``(n,)`` the rows from the least confident to the most.
        last: ``(n,)`` whether the row of that rank is the last of its confidence.
        cuts: ``(m + 1,)`` ranks between bins, from 0 to n.
        times: ``(b, n)`` how often each row comes in a redraw, n times in all.
        errors: ``(b,)``.
    """
    n = order.shape[0]
    gaps, counts = np.empty(n), np.empty(n)
    for b in range(times.shape[0]):
        for i in range(n):
            row = order[i]
            counts[i] = times[b, row]
            gaps[i] = counts[i] * gap[row]
        errors[b] = _binned(gaps, counts, last, cuts)


@compiled(**_PLAIN)
def calibrated_errors(
    confidence: Any, order: Any, last: Any, cuts: Any, uniform: Any, errors: Any
) -> None:
    """Write the ECE of the rows with truths drawn as the confidences say to ``errors``.

    Args:
        confidence: ``(n,)``.
        order: As above, and so ``last`` and ``cuts``.
        last: See there.
        cuts: See there.
        uniform: ``(b, n)`` random numbers; a row is right where its number is below its confidence.
        errors: ``(b,)``.
    """
    n = order.shape[0]
    gaps, counts = np.empty(n), np.ones(n)
    for b in range(uniform.shape[0]):
        for i in range(n):
            row = order[i]
            gaps[i] = confidence[row] - (1.0 if uniform[b, row] < confidence[row] else 0.0)
        errors[b] = _binned(gaps, counts, last, cuts)


@njit(**_PLAIN)
def _binned(gaps: Any, counts: Any, last: Any, cuts: Any) -> Any:
    """``sum_b |sum of gaps in bin b| / n``; equal confidences that are cut are spread evenly."""
    n = gaps.shape[0]
    total, within, rank = 0.0, 0.0, 0.0
    group, count, cut = 0.0, 0.0, 1
    for i in range(n):
        group += gaps[i]
        count += counts[i]
        if not last[i]:
            continue
        left = count
        while cut < cuts.shape[0] and rank + left >= cuts[cut] and left > 0:
            taken = cuts[cut] - rank
            within += group * taken / count
            total += abs(within)
            within = 0.0
            rank += taken
            left -= taken
            cut += 1
        if left > 0:
            within += group * left / count
            rank += left
        group, count = 0.0, 0.0
    return total / n
