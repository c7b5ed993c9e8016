"""Passes over many confidences that put them into bins without sorting them.

The cuts between bins of equal size fall into a few narrow cells of a histogram. All other cells
lie inside one bin and are summed as the rows come; only the samples of those few are kept apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Confidence, Correct
from shiftcal.numerics._jit import to_read
from shiftcal.numerics._threads import in_parts

# Rows in a part. Fixed, so that nothing depends on the number of threads.
_PART = 1 << 19


class Sums(NamedTuple):
    """Sums over the samples of each of ``m`` bins, with confidences rounded to multiples of 2**-46.

    Attributes:
        counts: ``(m,)`` number of samples.
        confidence: ``(m,)`` sum of their confidence.
        correct: ``(m,)`` number of correct ones.
    """

    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    correct: NDArray[np.float64]


class Apart(NamedTuple):
    """Samples near a cut, in order of confidence.

    Attributes:
        keys: The bits of the confidence, and after them one bit for correctness.
        ranks: The rank of each among all samples.
    """

    keys: NDArray[np.int64]
    ranks: NDArray[np.int64]


def sums_by_width(confidence: Confidence, correct: Correct, n_bins: int) -> Sums:
    """Sums of the samples with ``i / n_bins < confidence <= (i + 1) / n_bins``."""
    from shiftcal.numerics.binning import bin_kernels as kernels

    confidence, correct = to_read(confidence), to_read(correct)
    parts = _parts(len(confidence))
    raw = np.zeros((len(parts), 3, 2 * n_bins), dtype=np.int64)

    def work(first: int, last: int) -> None:
        for i in range(first, last):
            kernels.sum_by_width(confidence[parts[i]], correct[parts[i]], raw[i])

    in_parts(work, len(parts), least=2)
    return _sums(raw)


def sums_by_rank(
    confidence: Confidence, correct: Correct, ends: NDArray[np.int64]
) -> tuple[Sums, Apart]:
    """Sums of the samples of ranks below ``ends[0]``, then below ``ends[1]``, and so on.

    Left out of the sums, and returned apart, are the samples of first and last rank in each bin
    and all those that share a cell of the histogram with one of these.
    """
    from shiftcal.numerics.binning import bin_kernels as kernels

    confidence, correct = to_read(confidence), to_read(correct)
    parts = _parts(len(confidence))
    counts = np.zeros((len(parts), kernels.CELLS), dtype=np.int64)

    def count(first: int, last: int) -> None:
        for i in range(first, last):
            kernels.count_cells(confidence[parts[i]], counts[i])

    in_parts(count, len(parts), least=2)
    size = counts.sum(axis=0)
    stop = size.cumsum()
    wanted = np.concatenate([[0], ends[:-1], ends - 1])
    apart = np.unique(np.searchsorted(stop, wanted, side="right"))
    bin_of_cell = np.searchsorted(ends, stop - size, side="right").astype(np.int32)
    bin_of_cell[apart] = len(ends)
    raw = np.zeros((len(parts), 3, 2 * len(ends)), dtype=np.int64)
    keys = np.empty(size[apart].sum(), dtype=np.int64)
    offsets = np.concatenate([[0], counts[:, apart].sum(axis=1).cumsum()])

    def add(first: int, last: int) -> None:
        for i in range(first, last):
            mine = keys[offsets[i] : offsets[i + 1]]
            kernels.sum_by_cell(confidence[parts[i]], correct[parts[i]], bin_of_cell, raw[i], mine)

    in_parts(add, len(parts), least=2)
    keys.sort()
    ranks = np.concatenate([np.arange(stop[cell] - size[cell], stop[cell]) for cell in apart])
    return _sums(raw), Apart(keys, ranks)


def _parts(n: int) -> list[slice]:
    return [slice(start, start + _PART) for start in range(0, n, _PART)]


def _sums(raw: NDArray[np.int64]) -> Sums:
    """From the kernels' whole numbers, ``(parts, 3, 2 m)``, wrong and right samples in turn."""
    counts, high, low = raw.sum(axis=0)
    confidence = high * 2.0**-22 + low * 2.0**-46
    pairs = (-1, 2)
    return Sums(
        counts.reshape(pairs).sum(axis=1),
        confidence.reshape(pairs).sum(axis=1),
        counts[1::2].astype(np.float64),
    )
