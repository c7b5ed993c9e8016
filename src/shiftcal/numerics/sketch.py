"""Fixed-size cells that count confidences of any number of rows, with exact integer sums."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.binning import BinSums, Groups, equal_size_cuts, sums_between
from shiftcal.types import Floats

# --------------------------------------------------------------------------------------
# Cells that confidences fall into: of equal width in the middle, ever finer towards 0 and 1.
#
# With ``d`` the distance to the nearer end and ``p`` the precision, a cell is ``2^-(p+6)`` wide
# where
# ``d > 1/64``. Nearer to the end every octave ``(2^-j, 2^-(j-1)]`` of ``d``, for ``j = 7..25``, is
# cut into ``2^p`` cells; what is nearer than ``2^-25`` is one cell (float32 knows nothing between
# that and 1), and exactly 0 and exactly 1 have cells of their own, because a float32 softmax gives
# many ones. Cells hold their upper end. Only bits of floats and powers of two are used, so a
# confidence has the same cell on every machine.
# --------------------------------------------------------------------------------------

_OCTAVES = range(7, 26)
_MANTISSA = 52
_EXPONENT_BIAS = 1023


def n_cells(precision: int) -> int:
    """Number of cells."""
    return 2 * (2 + (len(_OCTAVES) << precision) + (31 << precision))


def cell_of(confidence: Floats, precision: int) -> NDArray[np.int64]:
    """The cell of each confidence; a greater confidence is never in a lower cell."""
    c = confidence.astype(np.float64)
    above = c > 0.5
    distance = np.where(above, 1.0 - c, c)  # exact: 1 - c is a float wherever c is above one half
    # One bit less, below one half, closes cells at their upper end as the mirror does above it.
    pattern = distance.view(np.int64) - ~above
    octaves = pattern >> (_MANTISSA - precision)
    octaves -= (_EXPONENT_BIAS - _OCTAVES[-1]) << precision
    step = np.maximum(octaves, -1) + 2
    middle = pattern >= _pattern_of(1 / 64)
    even = (pattern[middle].view(np.float64) * 2.0 ** (precision + 6)).astype(np.int64)
    step[middle] = even + (2 + ((len(_OCTAVES) - 1) << precision))
    step[distance == 0] = 0
    return np.where(above, n_cells(precision) - 1 - step, step)


def _pattern_of(x: float) -> int:
    return int(np.float64(x).view(np.int64))


# --------------------------------------------------------------------------------------
# Sums over cells of confidence: fixed size, whole numbers, so any order adds up to the same.
#
# One table serves ``s`` series at once (the top-1 confidence is one; the columns of ``k`` classes
# are ``k``). Confidences are summed as whole multiples of ``2^-30``: each is off by ``2^-31`` at
# the
# most, and addition is exact.
# --------------------------------------------------------------------------------------

CONFIDENCE_UNIT = 2.0**-30
# Values handled in one go: their cells and patterns stay in the processor's cache.
_BLOCK = 1 << 16


@dataclass(eq=False)
class CellSums:
    """Sums over cells, and over bins of equal width, for each of ``s`` series.

    Attributes:
        count: ``(s, cells)`` rows.
        correct: ``(s, cells)`` rows that are correct.
        confidence: ``(s, cells)`` sum of confidences in units of ``2^-30``.
        least: ``(s, cells)`` least confidence, 2 in an empty cell.
        most: ``(s, cells)`` greatest confidence, -1 in an empty cell.
        width: ``(3, s, m)`` rows, correct rows and confidence in ``m`` bins of equal width,
            because their edges fall inside cells.
        precision: Fineness of the cells.
    """

    count: NDArray[np.int64]
    correct: NDArray[np.int64]
    confidence: NDArray[np.int64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]
    width: NDArray[np.int64]
    precision: int

    @classmethod
    def empty(cls, *, precision: int, width_bins: int, series: int = 1) -> CellSums:
        """A table that has seen nothing."""
        shape = (series, n_cells(precision))
        return cls(
            count=np.zeros(shape, np.int64),
            correct=np.zeros(shape, np.int64),
            confidence=np.zeros(shape, np.int64),
            least=np.full(shape, 2.0),
            most=np.full(shape, -1.0),
            width=np.zeros((3, series, width_bins), np.int64),
            precision=precision,
        )

    def arrays(self) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
        """The tables by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "precision"}

    def add(self, confidence: Floats, correct: NDArray[np.bool_]) -> None:
        """Count rows: ``(n, s)`` confidences and whether each is correct."""
        rows = max(1, _BLOCK // confidence.shape[1])
        for start in range(0, len(confidence), rows):
            self._add_block(confidence[start : start + rows], correct[start : start + rows])

    def _add_block(self, confidence: Floats, correct: NDArray[np.bool_]) -> None:
        series = np.arange(self.count.shape[0])
        c = confidence.astype(np.float64).ravel()
        r = correct.astype(np.int64).ravel()
        fixed = np.rint(c / CONFIDENCE_UNIT).astype(np.int64)
        cell = (cell_of(confidence, self.precision) + series * self.count.shape[1]).ravel()
        np.add.at(self.count.reshape(-1), cell, 1)
        np.add.at(self.correct.reshape(-1), cell, r)
        np.add.at(self.confidence.reshape(-1), cell, fixed)
        np.minimum.at(self.least.reshape(-1), cell, c)
        np.maximum.at(self.most.reshape(-1), cell, c)
        m = self.width.shape[2]
        # The rule of binning.equal_width_bins: (i/m, (i+1)/m], the first bin closed.
        inner = np.linspace(0, 1, m + 1)[1:-1]
        where = np.searchsorted(inner, confidence, side="left") + series * m
        for table, values in zip(self.width, (np.ones_like(r), r, fixed), strict=True):
            np.add.at(table.reshape(-1), where.ravel(), values)

    def merge(self, other: CellSums) -> None:
        """Take in the rows another table of the same shape has counted."""
        self.count += other.count
        self.correct += other.correct
        self.confidence += other.confidence
        self.width += other.width
        np.minimum(self.least, other.least, out=self.least)
        np.maximum(self.most, other.most, out=self.most)

    def groups(self, series: int = 0) -> Groups:
        """The cells that hold anything, as groups of nearly equal confidence."""
        held = self.count[series] > 0
        return Groups(
            count=self.count[series, held],
            confidence=self.confidence[series, held] * CONFIDENCE_UNIT,
            correct=self.correct[series, held].astype(np.float64),
        )

    def width_bins(self, series: int = 0) -> BinSums:
        """The bins of equal width: exact but for the rounding of each confidence."""
        count, correct, confidence = self.width[:, series]
        edges = np.linspace(0, 1, len(count) + 1)
        return BinSums(
            count.copy(),
            confidence * CONFIDENCE_UNIT,
            correct.astype(np.float64),
            edges[:-1],
            edges[1:],
        )

    def size_bins(self, n_bins: int, series: int = 0, *, whole_ties: bool = False) -> BinSums:
        """Bins of equally many rows.

        A cell that lies across a cut is spread evenly; with ``whole_ties`` the cut moves to the
        upper end of a cell whose rows are all equal.
        """
        groups = self.groups(series)
        cuts = equal_size_cuts(groups.n, n_bins)
        held = self.count[series] > 0
        ends = np.cumsum(groups.count)
        if whole_ties:
            cell = np.searchsorted(ends, cuts[1:])
            tied = (self.least == self.most)[series, held][cell]
            cuts = np.concatenate([[0], np.unique(np.where(tied, ends[cell], cuts[1:]))])
        first = np.searchsorted(ends, cuts[:-1], side="right")
        last = np.searchsorted(ends, cuts[1:], side="left")
        return BinSums(
            np.diff(cuts),
            sums_between(groups.count, groups.confidence, cuts),
            sums_between(groups.count, groups.correct, cuts),
            self.least[series, held][first],
            self.most[series, held][last],
        )


# --------------------------------------------------------------------------------------
# Equal-size ECE as the length of a path, and how far a table of cells can be off.
#
# Let ``P(a) = sum_{i <= a} (c_i - r_i)`` over rows in order of confidence. A bin between ranks
# ``a``
# and ``b`` has residual ``P(b) - P(a)``, so ``n ECE = sum |P(a_j) - P(a_(j-1))|``: the up-and-down
# length of the path through the cuts. A table knows ``P`` exactly at the ends of cells and between
# bounds inside them. The least and greatest length of a path within those bounds therefore enclose
# the exact ECE, whatever the rows inside the cells were.
# --------------------------------------------------------------------------------------


def ece_range(cells: CellSums, n_bins: int) -> tuple[float, float]:
    """Least and greatest equal-size ECE any rows with this table can have."""
    n = int(cells.count[0].sum())
    low, high = path_range(cells, equal_size_cuts(n, n_bins))
    return least_length(low, high) / n, greatest_length(low, high) / n


def path_range(
    cells: CellSums, cuts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds on ``P`` at the ranks ``cuts``."""
    held = cells.count[0] > 0
    count = cells.count[0, held]
    confidence = cells.confidence[0, held] * CONFIDENCE_UNIT
    correct = cells.correct[0, held]
    ends = np.cumsum(count)
    before = np.concatenate([[0.0], np.cumsum(confidence - correct)])
    at = np.minimum(np.searchsorted(ends, cuts, side="left"), len(ends) - 1)
    m, size = cuts - (ends - count)[at], count[at]  # rows of the cut cell that lie below
    least, most = cells.least[0, held][at], cells.most[0, held][at]
    mean = confidence[at] / size

    # Of the m lowest of a cell, the mean confidence is not above the cell's mean; the number
    # correct is what the others leave, or all there are.
    least_confidence = np.maximum(m * least, confidence[at] - (size - m) * most)
    least_correct = np.maximum(0, m - (size - correct[at]))
    most_correct = np.minimum(m, correct[at])
    one_value = least == most  # rows of equal confidence are spread evenly by definition
    even = m * correct[at] / size
    slack = ends[at] * CONFIDENCE_UNIT / 2
    low = np.where(one_value, m * mean - even, least_confidence - most_correct)
    high = np.where(one_value, m * mean - even, m * mean - least_correct)
    return before[at] + low - slack, before[at] + high + slack


def least_length(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """The shortest way through the intervals in order: stay unless forced, then go no further.

    Any other way ends no nearer to where it must go next than what it has walked more.
    """
    at, length = min(max(0.0, low[0]), high[0]), 0.0
    for a, b in zip(low[1:], high[1:], strict=True):
        to = min(max(at, a), b)
        length += abs(to - at)
        at = to
    return float(length)


def greatest_length(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """The longest way through the intervals: length is convex, so it turns at their ends."""
    ends = np.stack([low, high])
    length = np.zeros(2)
    for j in range(1, ends.shape[1]):
        steps = np.abs(ends[:, j][:, None] - ends[:, j - 1][None, :])
        length = (steps + length[None, :]).max(axis=1)
    return float(length.max())


# --------------------------------------------------------------------------------------
# Sums as whole numbers of a unit, which come out the same in any order and grouping.
# --------------------------------------------------------------------------------------

# The smallest difference two floats can have: every finite float is a whole multiple of it.
EXACT_BITS = 1074
# Sums of halves fit into 64 bits for any number of values that fits into memory.
_HALF = 26


def exact_sum(values: NDArray[np.float64]) -> int:
    """The sum of finite values without any rounding, in units of ``2**-1074``."""
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    shift = exponent.astype(np.int64) - 53 + EXACT_BITS
    # What is below the unit is zero: a subnormal's mantissa has as many zeros at its end.
    below = shift < 0
    whole[below] >>= -shift[below]
    shift[below] = 0
    return sum(_sum(whole[shift == s]) << int(s) for s in np.unique(shift))


def fixed_sum(values: NDArray[np.float64], bits: int) -> int:
    """The sum of the nearest whole multiples of ``2**-bits``, in that unit."""
    return _sum(np.rint(np.ldexp(values, bits)).astype(np.int64))


def fixed_square_sum(values: NDArray[np.float64], bits: int) -> int:
    """The sum of the squares of those multiples, in units of ``2**(-2 bits)``; bits up to 52."""
    whole = np.rint(np.ldexp(values, bits)).astype(np.int64)
    high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
    squares = [_sum(high * high), _sum(high * low), _sum(low * low)]
    return (squares[0] << (2 * _HALF)) + (squares[1] << (_HALF + 1)) + squares[2]


def _sum(whole: NDArray[np.int64]) -> int:
    """The sum of whole numbers of up to 53 bits, which may be too large for 64."""
    high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
    return (int(high.sum()) << _HALF) + int(low.sum())
