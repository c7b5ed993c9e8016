"""Every metric from statistics of fixed size that can be added up, for data of any size."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._types import Confidence, Correct
from shiftcal.errors import InputError
from shiftcal.metrics._bin_table import BinTable
from shiftcal.metrics._bins import Binning, check_bins
from shiftcal.metrics._sketch_state import SketchState
from shiftcal.metrics.base import check_full, check_top1
from shiftcal.numerics.binning.bins import BinSums
from shiftcal.numerics.binning.errors import debiased_error, expected_error, largest_error
from shiftcal.numerics.binning.groups import Groups, largest_residual
from shiftcal.numerics.losses import hits, log_losses, square_losses, top1_square_losses
from shiftcal.numerics.risk_coverage import area_under_risk
from shiftcal.numerics.sketch.cell_sums import CONFIDENCE_UNIT, CellSums
from shiftcal.numerics.sketch.residual_path import ece_range
from shiftcal.numerics.smooth import smooth_error


class MetricSketch:
    """Statistics of fixed size from which every metric can be read, for data of any size.

    Rows are counted in cells of confidence, finer towards 0 and 1, and forgotten. Everything is
    kept as whole numbers, so shards may be cut, ordered and added in any way: the statistics, and
    every number read from them, come out the same to the last bit.

    ========================================  ====================================================
    accuracy, nll, brier, top1_brier          exact, up to rounding each row to 1e-7 or finer
    ece, mce, debiased_ece with equal width   exact, up to rounding each confidence to 5e-10
    ece with equal size                       :meth:`ece_range` encloses the exact value
    all others                                the exact definition with the rows of a cell taken
                                              as rows of equal confidence
    ========================================  ====================================================

    A cell is 7.6e-6 wide between 1/64 and 63/64, 3.8e-6 at 0.99, 4.8e-7 at 0.999. As long as no
    cell holds more than 0.01 % of the rows, the equal-size ECE of 10 million rows is within 1e-5
    of the exact value (2e-6 was the worst seen). Where neighbouring bins err to the same side, as
    they do when the model is too sure, it is within 1e-9 whatever the cells hold. Confidences
    packed more tightly than a spread of 0.03 need more ``precision``; ``ece_range`` tells.

    With the default precision it takes 8.2 MB, and with ``n_classes`` 32 kB a class more. It can
    count up to 8,589,934,591 (2^33 - 1) rows.

    Args:
        precision: Fineness of the cells, 1 to 16: one more halves them and doubles the size.
        width_bins: Number of bins of equal width, whose sums are kept by themselves.
        n_classes: Keep statistics of every class too, for ``classwise_ece``.

    Example:
        >>> left, right = MetricSketch(), MetricSketch()
        >>> left.update_top1([0.6, 0.7], [True, False])
        >>> right.update_top1([0.8, 0.9], [True, True])
        >>> round((left + right).ece(n_bins=2), 4)
        0.15
    """

    def __init__(
        self, *, precision: int = 11, width_bins: int = 15, n_classes: int | None = None
    ) -> None:
        precision = check_count(precision, name="precision")
        if precision > 16:
            raise InputError(
                f"precision must be at most 16; got {precision}. Every step doubles the size, "
                "which is 262 MB at 16."
            )
        width_bins = check_count(width_bins, name="width_bins")
        k = 0 if n_classes is None else check_count(n_classes, name="n_classes", least=2)
        self._state = SketchState.empty(precision, width_bins, k)

    def update(self, probs: object, labels: object) -> None:
        """Count rows of probabilities ``(n, k)`` with their labels ``(n,)``."""
        p, y = check_full(probs, labels)
        self._state.require_columns(p.shape[1])
        correct = hits(p, y)
        self._update_top1(p.max(axis=1), correct)
        self._state.add_losses(log_losses(p, y), square_losses(p, y))
        if self._state.classes is not None:
            self._state.classes.add(p, y[:, None] == np.arange(p.shape[1]))

    def update_top1(self, confidence: object, correct: object) -> None:
        """Count rows of which only the confidence and the correctness are known, ``(n,)`` each.

        What needs whole rows (accuracy does not) cannot be read afterwards.
        """
        self._update_top1(*check_top1(confidence, correct))

    def _update_top1(self, confidence: Confidence, correct: Correct) -> None:
        self._state.add_rows(len(confidence))
        self._state.top1.add(confidence[:, None], correct[:, None])
        self._state.add_top1_losses(top1_square_losses(confidence, correct))

    def merge(self, other: MetricSketch) -> Self:
        """Take in everything another sketch has counted; the other stays as it is."""
        if not isinstance(other, MetricSketch):
            raise InputError(
                f"only a MetricSketch can be added to one; got {type(other).__name__}."
            )
        self._state.merge(other._state)
        return self

    def __add__(self, other: object) -> MetricSketch:
        if not isinstance(other, MetricSketch):
            return NotImplemented
        return self._copy().merge(other)

    def __radd__(self, other: object) -> MetricSketch:
        # sum() of sketches starts from 0, and a sum must not be one of its parts.
        return self._copy() if other == 0 else NotImplemented

    def _copy(self) -> Self:
        copy = type(self).__new__(type(self))
        copy._state = self._state.copy()
        return copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetricSketch):
            return NotImplemented
        return self._state.same(other._state)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<MetricSketch of {self.n:,} rows, {self.nbytes / 1e6:.1f} MB>"

    @property
    def n(self) -> int:
        """Rows counted."""
        return self._state.rows

    @property
    def nbytes(self) -> int:
        """Size in memory, which never changes."""
        return sum(array.nbytes for array in self._state.to_arrays().values())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as arrays: ``np.savez_compressed(path, **sketch.to_arrays())``."""
        return self._state.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Any) -> Self:
        """The sketch that ``to_arrays`` gave; ``np.load(path)`` will do.

        Raises:
            InputError: If these are not the arrays of a sketch.
        """
        sketch = cls.__new__(cls)
        sketch._state = SketchState.from_arrays(arrays)
        return sketch

    def bin_table(self, *, n_bins: int = 15, binning: Binning = "size") -> BinTable:
        """:func:`shiftcal.metrics.bin_table` of the rows counted."""
        return BinTable.from_sums(self._bins(self._seen, n_bins, binning))

    def ece(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.metrics.ece` of the rows counted."""
        return expected_error(self._bins(self._seen, n_bins, binning))

    def ece_range(self, *, n_bins: int = 15, binning: Binning = "size") -> tuple[float, float]:
        """Two numbers between which the exact ECE of the rows counted lies, guaranteed.

        They follow from what the cells at the cuts between bins can have held.
        """
        value = self.ece(n_bins=n_bins, binning=binning)
        if binning == "width":
            return value - CONFIDENCE_UNIT / 2, value + CONFIDENCE_UNIT / 2
        low, high = ece_range(self._seen, n_bins)
        return min(low, value), max(high, value)

    def mce(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.metrics.mce` of the rows counted."""
        return largest_error(self._bins(self._seen, n_bins, binning))

    def debiased_ece(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.metrics.debiased_ece` of the rows counted."""
        return debiased_error(self._bins(self._seen, n_bins, binning))

    def classwise_ece(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.metrics.classwise_ece` of the rows counted, from coarser cells."""
        self._state.require_whole_rows("classwise_ece")
        cells = self._state.classes
        if cells is None:
            raise InputError(
                "classwise_ece needs statistics of every class, and this sketch keeps none. "
                "Make it with MetricSketch(n_classes=k)."
            )
        each = [
            expected_error(self._bins(cells, n_bins, binning, series=j))
            for j in range(len(cells.count))
        ]
        return float(np.mean(each))

    def ks_error(self) -> float:
        """:func:`shiftcal.metrics.ks_error` of the rows counted, looked at between cells."""
        return largest_residual(self._groups)

    def smooth_ece(self) -> float:
        """:func:`shiftcal.metrics.smooth_ece` of the rows counted."""
        groups = self._groups
        residual = (groups.confidence - groups.correct) / groups.n
        return smooth_error(groups.confidence / groups.count, residual)

    def aurc(self) -> float:
        """:func:`shiftcal.metrics.aurc` of the rows counted."""
        return area_under_risk(self._groups)

    def accuracy(self) -> float:
        """:func:`shiftcal.metrics.accuracy` of the rows counted."""
        return int(self._seen.correct.sum()) / self.n

    def top1_brier(self) -> float:
        """:func:`shiftcal.metrics.top1_brier` of the rows counted."""
        return self._state.mean_loss("top1_brier")

    def nll(self) -> float:
        """:func:`shiftcal.metrics.nll` of the rows counted."""
        return self._state.mean_loss("nll")

    def brier(self) -> float:
        """:func:`shiftcal.metrics.brier` of the rows counted."""
        return self._state.mean_loss("brier")

    @property
    def _seen(self) -> CellSums:
        self._state.require_rows()
        return self._state.top1

    @property
    def _groups(self) -> Groups:
        return self._seen.groups()

    def _bins(
        self, cells: CellSums, n_bins: object, binning: object, *, series: int = 0
    ) -> BinSums:
        m, kind = check_bins(n_bins, binning)
        if kind == "size":
            return cells.size_bins(m, series)
        kept = cells.width.shape[2]
        if m != kept:
            raise InputError(
                f"this sketch keeps {kept} bins of equal width; {m} were asked for. "
                f"Make it with MetricSketch(width_bins={m}), or ask for n_bins={kept}."
            )
        return cells.width_bins(series)
