"""The table behind a reliability diagram and behind ECE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_confidence
from shiftcal._html import piece, table
from shiftcal.errors import InputError
from shiftcal.metrics._bins import Binning, bins, check_bins
from shiftcal.metrics.base import check_top1
from shiftcal.numerics.binning.bins import BinSums
from shiftcal.numerics.binning.by_other import binned_by

# Bins that a notebook shows.
_MOST_SHOWN = 50
_COLUMNS = ("lower", "upper", "count", "confidence", "accuracy", "gap")


@dataclass(frozen=True, eq=False)
class BinTable:
    """What is known of each bin, from the least confident to the most. All fractions.

    Attributes:
        lower: ``(m,)`` lower end: the least confidence in a bin of equal size, the edge (not
            itself inside, but for the first) of a bin of equal width.
        upper: ``(m,)`` upper end, inside the bin.
        count: ``(m,)`` rows.
        confidence: ``(m,)`` mean confidence, NaN in an empty bin.
        accuracy: ``(m,)`` fraction correct, NaN in an empty bin.
        gap: ``(m,)`` ``confidence - accuracy``: above zero where the model is too sure.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    count: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    gap: NDArray[np.float64]

    @classmethod
    def from_sums(cls, sums: BinSums) -> BinTable:
        """The table of the sums over bins."""
        rows = np.where(sums.counts > 0, sums.counts, np.nan)
        confidence, accuracy = sums.confidence / rows, sums.correct / rows
        return cls(
            lower=sums.lower,
            upper=sums.upper,
            count=sums.counts,
            confidence=confidence,
            accuracy=accuracy,
            gap=confidence - accuracy,
        )

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean of ``|gap|``, each bin weighing as its rows."""
        held = self.count > 0
        return float(np.average(np.abs(self.gap[held]), weights=self.count[held]))

    @property
    def mce(self) -> float:
        """Maximum calibration error: the largest ``|gap|``."""
        return float(np.nanmax(np.abs(self.gap)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Column name to list, ready for JSON: what an empty bin does not have is ``None``."""
        columns = {name: getattr(self, name).tolist() for name in _COLUMNS}
        return {
            name: [None if math.isnan(value) else value for value in column]
            for name, column in columns.items()
        }

    def __len__(self) -> int:
        return len(self.count)

    def __repr__(self) -> str:
        return f"<BinTable of {len(self)} bins, {self.count.sum():,} rows, ECE {self.ece:.4f}>"

    def _repr_html_(self) -> str:
        title = f"{len(self)} bins, {self.count.sum():,} rows, ECE {self.ece:.4f}"
        rows = ((i + 1, *self._line(i).split()[1:]) for i in range(len(self)))
        head = ("bin", *_COLUMNS)
        return piece(title, table(head, rows, total=len(self), most=_MOST_SHOWN, words=0))

    def __str__(self) -> str:
        head = f"{'bin':>4} {'lower':>7} {'upper':>7} {'count':>9} " + (
            f"{'confidence':>10} {'accuracy':>8} {'gap':>8}"
        )
        return "\n".join([head, *map(self._line, range(len(self)))])

    def _line(self, i: int) -> str:
        line = f"{i + 1:>4} {self.lower[i]:7.4f} {self.upper[i]:7.4f} {self.count[i]:>9,} "
        if self.count[i] == 0:
            return line + f"{'-':>10} {'-':>8} {'-':>8}"
        return line + f"{self.confidence[i]:10.4f} {self.accuracy[i]:8.4f} {self.gap[i]:+8.4f}"


def bin_table(
    confidence: object,
    correct: object,
    *,
    n_bins: int = 15,
    binning: Binning = "size",
    bin_by: object = None,
) -> BinTable:
    """Edges, counts, mean confidence, accuracy and gap of every bin.

    Its ``ece`` and ``mce`` are those of :func:`shiftcal.metrics.ece` and
    :func:`shiftcal.metrics.mce` with the same options.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins; bins of equal size are never more than the rows.
        binning: ``"size"`` or ``"width"``, as in :func:`shiftcal.metrics.ece`.
        bin_by: ``(n,)`` another confidence to form the bins on, such as the one before
            calibration, which some papers do; ``lower`` and ``upper`` are then in its units. By
            default the confidence that is judged forms them.

    Raises:
        InputError: If the arrays cannot be used.
    """
    c, r = check_top1(confidence, correct)
    if bin_by is None:
        return BinTable.from_sums(bins(c, r, n_bins, binning))
    by = check_confidence(bin_by, name="bin_by")
    if len(by) != len(c):
        raise InputError(
            f"bin_by must have one entry per confidence: {len(c)} confidences, {len(by)} entries. "
            "Check that both come from the same rows."
        )
    m, kind = check_bins(n_bins, binning)
    return BinTable.from_sums(binned_by(by, c, r, n_bins=m, binning=kind))
