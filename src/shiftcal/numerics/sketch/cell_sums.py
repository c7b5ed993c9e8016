"""Sums over cells of confidence: fixed size, whole numbers, so any order adds up to the same.

One table serves ``s`` series at once (the top-1 confidence is one; the columns of ``k`` classes
are ``k``). Confidences are summed as whole multiples of ``2^-30``: each is off by ``2^-31`` at the
most, and addition is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats
from shiftcal.numerics.binning.bins import BinSums
from shiftcal.numerics.binning.groups import Groups, equal_size_cuts, sums_between
from shiftcal.numerics.sketch.cells import cell_of, n_cells

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

    def size_bins(self, n_bins: int, series: int = 0) -> BinSums:
        """Bins of equally many rows; a cell that lies across a cut is spread evenly."""
        groups = self.groups(series)
        cuts = equal_size_cuts(groups.n, n_bins)
        held = self.count[series] > 0
        ends = np.cumsum(groups.count)
        first = np.searchsorted(ends, cuts[:-1], side="right")
        last = np.searchsorted(ends, cuts[1:], side="left")
        return BinSums(
            np.diff(cuts),
            sums_between(groups.count, groups.confidence, cuts),
            sums_between(groups.count, groups.correct, cuts),
            self.least[series, held][first],
            self.most[series, held][last],
        )
