"""Statistics of scores that add up, so that rows never have to meet in one place.

:func:`find_parts` finds the parts of one job; :func:`merge_scores` and :func:`merge_statistics`
put their rows or their statistics together.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    check_count,
    check_not_negative,
    check_range,
    check_scores,
)
from shiftcal.errors import FileError, InputError
from shiftcal.files import (
    NpzStream,
    atomic_write,
    find,
    naming,
    open_npz,
    parsing,
    read_document,
    read_npz,
    write_document,
)
from shiftcal.metrics import Binning, BinTable, check_binning, check_bins
from shiftcal.numerics.binning import (
    BinSums,
    Groups,
    area_under_risk,
    debiased_error,
    equal_size_cuts,
    expected_error,
    largest_error,
    largest_residual,
    smooth_error,
    sums_between,
)
from shiftcal.numerics.softmax import p_max, top1_square_losses
from shiftcal.numerics.temperature import (
    BETAS,
    FRACTION_BITS,
    FitStatus,
    Likelihood,
    TemperatureSolution,
    end_status,
    ladder_sums,
)
from shiftcal.scores import Scores
from shiftcal.scores_io import the_kind
from shiftcal.types import Floats, Labels, Logits

# Elements in a block: 16 MB of double precision, enough for all threads to have their part.
_BLOCK = 1 << 21
# Confidences are summed as whole multiples of 2**-40, so their squares as those of 2**-80.
CONFIDENCE_BITS = 40
# The smallest difference two floats can have: every finite float is a whole multiple of it.
EXACT_BITS = 1074
# Binary places of the other sums; of those that are not named, FRACTION_BITS.
_BITS = {"correct": 0, "top1_brier": 30, "regret": EXACT_BITS, "gain": EXACT_BITS}
# The temperatures between which the ladder gives the likelihood.
REACH = (1 / float(BETAS[-1]), 1 / float(BETAS[0]))
# A cell of confidence is 1.2e-4 wide in the middle, 6e-5 at 0.99; all of them take 0.5 MB.
PRECISION, FINEST = 7, 14
# In cells and bins confidences are summed as whole multiples of this.
UNIT = 2.0**-30
_WIDTH_BINS = 15
_MOST_ROWS = (1 << 33) - 1

FORMAT, VERSION = "shiftcal-statistics", 4
_KIND = "statistics of scores"
_FIX = "Write it again with `shiftcal score --statistics` or `shiftcal merge`."
_NO_ROWS = "none of the parts holds a row, so there is nothing to merge."


# --------------------------------------------------------------------------------------
# Cells that confidences fall into: of equal width in the middle, ever finer towards 0 and 1.
#
# With ``d`` the distance to the nearer end and ``p`` the precision, a cell is ``2^-(p+6)`` wide
# where ``d > 1/64``. Nearer to the end every octave ``(2^-j, 2^-(j-1)]`` of ``d``, for
# ``j = 7..25``, is cut into ``2^p`` cells; what is nearer than ``2^-25`` is one cell (float32 knows
# nothing between that and 1), and exactly 0 and exactly 1 have cells of their own, because a
# float32 softmax gives many ones. Cells hold their upper end. Only bits of floats and powers of two
# are used, so a confidence has the same cell on every machine.
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
    middle = pattern >= int(np.float64(1 / 64).view(np.int64))
    even = (pattern[middle].view(np.float64) * 2.0 ** (precision + 6)).astype(np.int64)
    step[middle] = even + (2 + ((len(_OCTAVES) - 1) << precision))
    step[distance == 0] = 0
    return np.where(above, n_cells(precision) - 1 - step, step)


# --------------------------------------------------------------------------------------
# Sums as whole numbers of a unit, which come out the same in any order and grouping.
# --------------------------------------------------------------------------------------

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


@dataclass(frozen=True, eq=False)
class ScoreStatistics:
    """Statistics of rows that need not be kept: half a megabyte for any number of them.

    Make it with :meth:`of` or :meth:`of_rows`, one pass over the rows in blocks; add those of
    other rows with ``+``, ``sum`` or :meth:`merged`. Everything is kept as whole numbers, and what
    a row adds does not depend on its neighbours: on one kind of processor any sharding in any order
    gives the same statistics to the last bit, and between processors the numbers read from them
    agree to 1e-11.

    ====================================  ========================================================
    accuracy                              exact
    mean and sd of confidence             up to rounding each p_max to 5e-13
    nll, brier, top1_brier                up to 1e-9 a row; nll 1e-8 at other temperatures
    temperature                           within 1e-6, relative; 3e-9 was the worst seen on sets
                                          of usual size
    ece, mce with 15 bins of equal width  exact, up to rounding each confidence to 5e-10
    ece with equal size                   :meth:`ece_range` encloses the exact value; within 1e-8
                                          where all bins err to one side, else 3e-5 was the worst
                                          seen at 200,000 rows, 2e-4 at 20,000
    all others                            the exact definition with the rows of a cell taken as
                                          rows of equal confidence
    ====================================  ========================================================

    Each step of ``precision`` above 7 halves the cells and doubles the size; with 11 the equal-size
    ECE of 10 million rows is within 1e-5 as long as no cell holds more than 0.01 % of them. At most
    8,589,934,591 rows can be counted. Without labels only the confidence is known, which is what
    SAC needs of a target.

    Attributes:
        k: Number of classes.
        classes: Their names in the order of the columns, if known.
        sums: Whole numbers: ``rows``; ``confidence`` and ``confidence_squared``; with labels
            ``correct`` and ``constant`` rows (all logits equal), and the sums of ``log sum
            exp(z - max z)``, of both Brier scores, of ``max z - z[label]`` (``regret``) and of
            ``z[label] - mean z`` (``gain``), each in its unit.
        ladder: Sums of moments at a ladder of temperatures; empty without labels.
        cells: ``(3, cells)`` rows, correct rows and sum of confidences (in units of ``2^-30``) in
            cells of confidence.
        ends: ``(2, cells)`` least and greatest confidence in each cell; 2 and -1 if it is empty.
        width: ``(3, 15)`` the same as ``cells`` in bins of equal width, whose edges fall inside
            cells.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.integers(0, 3, 600)
        >>> logits = 3 * rng.standard_normal((600, 3)) + 4 * np.eye(3)[labels]
        >>> parts = [ScoreStatistics.of_rows(logits[i::7], labels[i::7]) for i in range(7)]
        >>> sum(parts) == ScoreStatistics.of_rows(logits, labels)
        True
    """

    k: int
    classes: tuple[str, ...] | None
    sums: Mapping[str, int]
    ladder: tuple[int, ...]
    cells: NDArray[np.int64]
    ends: NDArray[np.float64]
    width: NDArray[np.int64]

    @classmethod
    def of(cls, scores: Scores, *, precision: int = PRECISION) -> ScoreStatistics:
        """The statistics of scores, in memory or mapped from a file.

        Args:
            scores: The rows.
            precision: Fineness of the cells, 1 to 14.

        Raises:
            InputError: If values are not what they should be, naming the file and the row.
        """
        check_count(precision, name="precision", most=FINEST)
        return cls.merged(
            cls._of_block(logits, labels, scores.classes, precision)
            for logits, labels in _checked_blocks(scores)
        )

    @classmethod
    def of_rows(
        cls, logits: object, labels: object = None, *, precision: int = PRECISION
    ) -> ScoreStatistics:
        """The statistics of logits ``(n, k)``, in memory or mapped, with labels ``(n,)`` if known.

        For probabilities use ``ScoreStatistics.of(Scores(probs, "probabilities", labels))``.
        """
        return cls.of(Scores(logits, labels=labels), precision=precision)  # type: ignore[arg-type]

    @classmethod
    def _of_block(
        cls, logits: Logits, labels: Labels | None, classes: tuple[str, ...] | None, precision: int
    ) -> ScoreStatistics:
        confidence = p_max(logits)
        sums = {
            "rows": len(logits),
            "confidence": fixed_sum(confidence, CONFIDENCE_BITS),
            "confidence_squared": fixed_square_sum(confidence, CONFIDENCE_BITS),
        }
        ladder: list[int] = []
        correct = np.zeros(len(logits), np.bool_)
        if labels is not None:
            correct = logits.argmax(axis=1) == labels
            ladder, log_sums, squares = ladder_sums(logits)
            z = logits.astype(np.float64)
            of_label = z[np.arange(len(z)), labels]
            regret = z.max(axis=1) - of_label
            brier = squares - 2 * np.exp(-regret - log_sums) + 1
            top1_brier = top1_square_losses(confidence, correct)
            sums |= {
                "correct": int(correct.sum()),
                "constant": int((z.max(axis=1) == z.min(axis=1)).sum()),
                "log_sum": fixed_sum(log_sums, FRACTION_BITS),
                "brier": fixed_sum(brier, FRACTION_BITS),
                "top1_brier": fixed_sum(top1_brier, _BITS["top1_brier"]),
                "regret": exact_sum(regret),
                "gain": exact_sum(of_label - z.mean(axis=1)),
            }
        cell, size = cell_of(confidence, precision), n_cells(precision)
        ends = np.repeat([[2.0], [-1.0]], size, axis=1)
        np.minimum.at(ends[0], cell, confidence)
        np.maximum.at(ends[1], cell, confidence)
        # The rule of binning.equal_width_bins: (i/m, (i+1)/m], the first bin closed.
        bin_of = np.searchsorted(np.linspace(0, 1, _WIDTH_BINS + 1)[1:-1], confidence, side="left")
        # Sums of a block stay below 2**53, so that floats hold them exactly.
        each = (np.ones(len(cell)), correct, np.rint(confidence / UNIT))
        cells, width = (
            np.stack([np.bincount(where, x, many) for x in each]).astype(np.int64)
            for where, many in ((cell, size), (bin_of, _WIDTH_BINS))
        )
        return cls(logits.shape[1], classes, sums, tuple(ladder), cells, ends, width)

    @classmethod
    def merged(cls, parts: Iterable[ScoreStatistics]) -> ScoreStatistics:
        """The statistics of all rows of all parts, which are iterated over once."""
        total = sum(parts)
        if not isinstance(total, ScoreStatistics):
            raise InputError("there are no statistics to merge; give at least one part.")
        return total

    def __add__(self, other: object) -> ScoreStatistics:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        mine, theirs = ((s.k, s.labelled, s.cells.shape) for s in (self, other))
        if mine != theirs or (self.classes or other.classes) != (other.classes or self.classes):
            raise InputError(
                "statistics that are added must have the same classes in the same order, labels "
                f"for all rows or for none, and one precision; these are {self} and {other}."
            )
        if self.n + other.n > _MOST_ROWS:
            raise InputError(f"statistics count at most {_MOST_ROWS:,} rows.")
        least, most = zip(self.ends, other.ends, strict=True)
        return ScoreStatistics(
            self.k,
            self.classes or other.classes,
            {name: total + other.sums[name] for name, total in self.sums.items()},
            tuple(a + b for a, b in zip(self.ladder, other.ladder, strict=True)),
            self.cells + other.cells,
            np.stack([np.minimum(*least), np.maximum(*most)]),
            self.width + other.width,
        )

    def __radd__(self, other: object) -> ScoreStatistics:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        plain = ("k", "classes", "sums", "ladder")
        return all(getattr(self, name) == getattr(other, name) for name in plain) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _TABLES
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        labels = "with" if self.labelled else "without"
        return f"<ScoreStatistics of {self.n:,} rows, {self.k} classes, {labels} labels>"

    @property
    def n(self) -> int:
        """Rows counted."""
        return self.sums["rows"]

    @property
    def labelled(self) -> bool:
        """Whether the rows had labels; without them only the confidence is known."""
        return bool(self.ladder)

    @property
    def mean_confidence(self) -> float:
        """Mean of the raw p_max; every row is rounded to 5e-13."""
        return self.sums["confidence"] / (self.n << CONFIDENCE_BITS)

    @property
    def sd_confidence(self) -> float:
        """Standard deviation of the raw p_max, from whole numbers: nothing cancels."""
        n, total = self.n, self.sums["confidence"]
        variance = n * self.sums["confidence_squared"] - total**2
        return float((variance / (n * n << 2 * CONFIDENCE_BITS)) ** 0.5)

    def accuracy(self) -> float:
        """Share of rows whose first largest logit is the label's."""
        return self._mean("correct", "accuracy")

    def bin_table(self, *, n_bins: int = 15, binning: Binning = "size") -> BinTable:
        """:func:`shiftcal.bin_table` of the rows."""
        return BinTable.from_sums(self._bins("bin_table", n_bins, binning))

    def ece(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.ece` of the rows; with equal width 15 bins only."""
        return expected_error(self._bins("ece", n_bins, binning))

    def ece_range(self, *, n_bins: int = 15, binning: Binning = "size") -> tuple[float, float]:
        """Two numbers between which the exact ECE of the rows lies, guaranteed.

        They follow from what the cells at the cuts between bins can have held.
        """
        value = self.ece(n_bins=n_bins, binning=binning)
        if check_binning(binning) == "width":
            return value - UNIT / 2, value + UNIT / 2
        low, high = self._path_range(equal_size_cuts(self.n, n_bins))
        return min(_least_length(low, high) / self.n, value), max(
            _greatest_length(low, high) / self.n, value
        )

    def mce(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.mce` of the rows."""
        return largest_error(self._bins("mce", n_bins, binning))

    def debiased_ece(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.debiased_ece` of the rows."""
        return debiased_error(self._bins("debiased_ece", n_bins, binning, whole_ties=True))

    def ks_error(self) -> float:
        """:func:`shiftcal.ks_error` of the rows, evaluated between cells."""
        return largest_residual(self._groups("ks_error"))

    def smooth_ece(self) -> float:
        """:func:`shiftcal.smooth_ece` of the rows."""
        groups = self._groups("smooth_ece")
        residual = (groups.confidence - groups.correct) / groups.n
        return smooth_error(groups.confidence / groups.count, residual)

    def aurc(self) -> float:
        """:func:`shiftcal.aurc` of the rows."""
        return area_under_risk(self._groups("aurc"))

    def top1_brier(self) -> float:
        """:func:`shiftcal.top1_brier` of the rows."""
        return self._mean("top1_brier")

    def nll(self, temperature: float = 1.0) -> float:
        """Mean of ``-log softmax(z / T)[label]``, no row's loss being cut off.

        Args:
            temperature: T, from 0.0086 to 128.
        """
        t = check_not_negative(temperature, name="temperature")
        return self._likelihood("nll", (t, t)).nll(1 / t)

    def brier(self) -> float:
        """:func:`shiftcal.brier` of the raw softmax."""
        return self._mean("brier")

    @property
    def temperature(self) -> float:
        """The temperature of least NLL between 0.01 and 100, from the sums alone."""
        return self.temperature_fit().temperature

    def temperature_fit(
        self, *, t_range: tuple[float, float] = (0.01, 100.0)
    ) -> TemperatureSolution:
        """The temperature of least NLL, how the fit ended, and the NLL there.

        Args:
            t_range: Smallest and largest temperature allowed, within 0.0086 and 128.
        """
        t_range = check_range(t_range, name="t_range")
        likelihood = self._likelihood("temperature", t_range)
        ends = (1 / t_range[1], 1 / t_range[0])
        beta = likelihood.minimum(ends) if self.sums["regret"] else None
        if beta is not None:
            return TemperatureSolution(1 / beta, FitStatus("converged"), likelihood.nll(beta))
        flat, error_free = self.sums["constant"] == self.n, self.sums["regret"] == 0
        upper = flat if error_free else likelihood.slope(ends[1]) > 0
        status = end_status(
            t_range, upper=upper, flat=flat, error_free=error_free, gain=self.sums["gain"]
        )
        temperature = t_range[upper]
        return TemperatureSolution(temperature, status, likelihood.nll(1 / temperature))

    def write(self, path: str | os.PathLike[str], *, part: Part | None = None) -> None:
        """Write everything to versioned JSON, whole or not at all.

        Args:
            path: The file.
            part: Which part of a job these are, for ``shiftcal merge``.
        """
        write_statistics(path, self, part)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ScoreStatistics:
        """The statistics that :meth:`write` wrote.

        Raises:
            FileError: If the file is missing, damaged, of another kind, or from another version.
        """
        statistics, _ = read_statistics(path)
        if statistics is None:
            raise FileError(f"{path} is of a part without any readable image: it holds no rows.")
        return statistics

    def _needs_labels(self, name: str) -> None:
        if not self.labelled:
            raise InputError(
                f"{name} needs labels, and these {self.n:,} rows were counted without. Only their "
                "number and their confidence are known."
            )

    def _mean(self, name: str, asked: str | None = None) -> float:
        """Mean over rows of a sum that needs labels."""
        self._needs_labels(asked or name)
        return self.sums[name] / (self.n << _BITS.get(name, FRACTION_BITS))

    def _groups(self, name: str) -> Groups:
        """The cells that hold rows, as groups of nearly equal confidence."""
        self._needs_labels(name)
        count, correct, confidence = self.cells[:, self.cells[0] > 0]
        return Groups(count, confidence * UNIT, correct.astype(np.float64))

    def _bins(
        self, name: str, n_bins: int, binning: Binning, *, whole_ties: bool = False
    ) -> BinSums:
        """Bins of equal width, or of equally many rows.

        A cell that lies across a cut is spread evenly; with ``whole_ties`` the cut moves to the
        upper end of a cell whose rows are all equal.
        """
        groups = self._groups(name)
        m, kind = check_bins(n_bins, binning)
        if kind == "width":
            if m != _WIDTH_BINS:
                raise InputError(
                    f"statistics keep {_WIDTH_BINS} bins of equal width; got n_bins={m}."
                )
            edges, (count, correct, confidence) = np.linspace(0, 1, m + 1), self.width
            sums = confidence * UNIT, correct.astype(np.float64)
            return BinSums(count, *sums, edges[:-1], edges[1:])
        least, most = self.ends[:, self.cells[0] > 0]
        cuts, ends = equal_size_cuts(self.n, m), np.cumsum(groups.count)
        if whole_ties:
            cell = np.searchsorted(ends, cuts[1:])
            moved = np.where((least == most)[cell], ends[cell], cuts[1:])
            cuts = np.concatenate([[0], np.unique(moved)])
        return BinSums(
            np.diff(cuts),
            sums_between(groups.count, groups.confidence, cuts),
            sums_between(groups.count, groups.correct, cuts),
            least[np.searchsorted(ends, cuts[:-1], side="right")],
            most[np.searchsorted(ends, cuts[1:], side="left")],
        )

    def _path_range(
        self, cuts: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds on ``P(a) = sum_{i <= a} (c_i - r_i)``, rows in order of confidence, at the cuts.

        A bin between ranks ``a`` and ``b`` has residual ``P(b) - P(a)``, so
        ``n ECE = sum |P(a_j) - P(a_(j-1))|``: the up-and-down length of the path through the cuts.
        ``P`` is known exactly at the ends of cells and between bounds inside them. The least and
        greatest length of a path within those bounds enclose the exact ECE, whatever rows the
        cells held.
        """
        held = self.cells[0] > 0
        count, correct, confidence = self.cells[:, held]
        confidence = confidence * UNIT
        ends = np.cumsum(count)
        before = np.concatenate([[0.0], np.cumsum(confidence - correct)])
        at = np.minimum(np.searchsorted(ends, cuts, side="left"), len(ends) - 1)
        m, size = cuts - (ends - count)[at], count[at]  # rows of the cut cell that lie below
        least, most = self.ends[:, held][:, at]
        mean = confidence[at] / size
        # Of the m lowest of a cell, the mean confidence is not above the cell's mean; the number
        # correct is what the others leave, or all there are.
        least_confidence = np.maximum(m * least, confidence[at] - (size - m) * most)
        least_correct = np.maximum(0, m - (size - correct[at]))
        most_correct = np.minimum(m, correct[at])
        one_value = least == most  # rows of equal confidence are spread evenly by definition
        even = m * correct[at] / size
        slack = ends[at] * UNIT / 2
        low = np.where(one_value, m * mean - even, least_confidence - most_correct)
        high = np.where(one_value, m * mean - even, m * mean - least_correct)
        return before[at] + low - slack, before[at] + high + slack

    def _likelihood(self, name: str, ends: tuple[float, float]) -> Likelihood:
        """The likelihood at every temperature of the ladder, which has to reach both ends."""
        regret = self._mean("regret", name)
        if not REACH[0] <= ends[0] <= ends[1] <= REACH[1]:
            raise InputError(
                f"statistics know temperatures from {REACH[0]:.2g} to {REACH[1]:g}; asked for was "
                f"{ends[0]:g}{'' if ends[0] == ends[1] else f' to {ends[1]:g}'}."
            )
        unit = self.n << FRACTION_BITS
        moments = np.array([total / unit for total in self.ladder]).reshape(3, -1)
        return Likelihood(moments, regret=regret, at_one=self._mean("log_sum") + regret)


# The arrays of statistics.
_TABLES = ("cells", "ends", "width")


def _checked_blocks(scores: Scores) -> Iterator[tuple[Logits, Labels | None]]:
    """Finite logits of some rows at a time, with their labels; the scores may stay on disk."""
    rows = max(1, _BLOCK // scores.k)
    for start in range(0, scores.n, rows):
        part = slice(start, start + rows)
        try:
            logits = check_scores(np.asarray(scores.values[part]), input=scores.input)
        except InputError as error:
            kind = FileError if scores.source else InputError
            counted = f" Rows are counted from row {start}." if start else ""
            raise kind(f"{scores.source or 'scores'}: {error}{counted}") from error
        yield logits, None if scores.labels is None else scores.labels[part]


def _least_length(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """The shortest way through the intervals in order: stay unless forced, then go no further."""
    at, length = min(max(0.0, low[0]), high[0]), 0.0
    for a, b in zip(low[1:], high[1:], strict=True):
        to = min(max(at, a), b)
        length += abs(to - at)
        at = to
    return float(length)


def _greatest_length(low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """The longest way through the intervals: length is convex, so it turns at their ends."""
    length = np.zeros(2)
    for before, after in pairwise(np.stack([low, high], axis=1)):
        length = (np.abs(after[:, None] - before) + length).max(axis=1)
    return float(length.max())


# --------------------------------------------------------------------------------------
# Statistics in a file.
# --------------------------------------------------------------------------------------


class Part(NamedTuple):
    """One of the parts that a job was cut into.

    Attributes:
        shard: Its number, from 1.
        of: Number of parts.
        first: Index of its first image.
        stop: Index after its last.
        n_images: Images of the whole job.
        key: A digest of the whole job, the same in all parts.
    """

    shard: int
    of: int
    first: int
    stop: int
    n_images: int
    key: str


def write_statistics(
    path: str | os.PathLike[str], statistics: ScoreStatistics | None, part: Part | None
) -> None:
    """Write statistics atomically; the same statistics give the same bytes.

    Args:
        path: The file.
        statistics: Of the usual precision; ``None`` for a part without rows.
        part: Which part of a job they are, if one.
    """
    content: dict[str, Any] = {"part": None if part is None else part._asdict()}
    if statistics is not None:
        if statistics.cells.shape[1] != n_cells(PRECISION):
            raise InputError(f"statistics are written with precision={PRECISION} only.")
        content |= {
            "n_classes": statistics.k,
            "classes": statistics.classes,
            "sums": statistics.sums,
            "ladder": statistics.ladder,
            "tables": {name: _packed(getattr(statistics, name)) for name in _TABLES},
        }
    write_document(Path(path), content, format=FORMAT, version=VERSION, indent=0)


def read_statistics(path: str | os.PathLike[str]) -> tuple[ScoreStatistics | None, Part | None]:
    """The statistics in a file, ``None`` if it has no rows, and which part of a job they are.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from another version.
    """
    source = Path(path)
    document = read_document(source, _KIND, format=FORMAT, version=VERSION, fix=_FIX)
    with parsing(source, _KIND, fix=_FIX):
        part = None if document["part"] is None else Part(**document["part"])
        if "sums" not in document:
            return None, part
        k, sums, ladder = document["n_classes"], document["sums"], tuple(document["ladder"])
        classes = None if document["classes"] is None else tuple(document["classes"])
        tables = {name: _unpacked(document["tables"][name]) for name in _TABLES}
        return ScoreStatistics(k, classes, sums, ladder, **tables), part


def _packed(table: NDArray[Any]) -> list[Any]:
    """Type, shape and content of an array, for JSON."""
    little = np.ascontiguousarray(table, table.dtype.newbyteorder("<"))
    content = base64.b64encode(zlib.compress(little.tobytes(), 4)).decode("ascii")
    return [little.dtype.str, *table.shape, content]


def _unpacked(packed: list[Any]) -> NDArray[Any]:
    dtype, *shape, content = packed
    table = np.frombuffer(zlib.decompress(base64.b64decode(content)), dtype).reshape(shape)
    return table.astype(table.dtype.newbyteorder("="))


# --------------------------------------------------------------------------------------
# Parts of one job, scored on machines that share no disk.
# --------------------------------------------------------------------------------------


class PartFile(NamedTuple):
    """A file that holds a part: scores (``.npz``) or statistics (``.json``)."""

    path: Path
    part: Part

    @property
    def is_statistics(self) -> bool:
        """Whether it holds statistics and no rows."""
        return self.path.suffix.lower() == ".json"


def find_parts(paths: Sequence[str | os.PathLike[str]]) -> list[PartFile]:
    """The parts of one job in the order of its images.

    Raises:
        FileError: If a file cannot be read, or does not say which part it is.
        InputError: If parts are missing, there twice, or of different jobs.
    """
    if not paths:
        raise InputError("there are no parts to merge. Name every file of the job.")
    parts = sorted((_part_file(find(path)) for path in paths), key=lambda file: file.part.shard)
    first, of = parts[0], parts[0].part.of
    for other in parts:
        mine, theirs = ((p.part.of, p.part.n_images, p.part.key) for p in (first, other))
        if mine != theirs:
            raise InputError(
                f"all parts must be of one job, cut alike; {first.path} and {other.path} differ in "
                f"the model, the images, an option, or the number of parts ({of} and "
                f"{other.part.of})."
            )
    there = [file.part.shard for file in parts]
    if there != list(range(1, of + 1)):
        missing = sorted(set(range(1, of + 1)) - set(there))
        raise InputError(
            f"all {of} parts must be there, each once; there are {there}. Leave out what is there "
            f"twice, and score what is missing with --shard {(missing or [1])[0]}/{of} and so on."
        )
    return parts


def _part_file(file: Path) -> PartFile:
    part = None
    if file.suffix.lower() == ".json":
        part = read_statistics(file)[1]
    elif file.suffix.lower() == ".npz" and (stored := read_npz(file, ["part"])):
        with parsing(file, "a part of a job", fix="Score it again."):
            part = Part(**json.loads(str(stored["part"])))
    if part is None:
        raise FileError(
            f"{file} does not say which part of a job it is. Merge .npz or .json files that "
            "`shiftcal score --shard i/n` wrote."
        )
    return PartFile(file, part)


def merge_statistics(parts: Sequence[PartFile]) -> ScoreStatistics:
    """The statistics of all rows of all parts, which are read one after the other.

    Raises:
        FileError: If a part cannot be read or does not fit the others, naming it.
    """
    total: ScoreStatistics | int = 0
    for file in parts:
        one = read_statistics(file.path)[0] if file.is_statistics else statistics_of_npz(file.path)
        with naming(file.path):
            total = total if one is None else total + one
    if not isinstance(total, ScoreStatistics):
        raise FileError(_NO_ROWS)
    return total


def merge_scores(parts: Sequence[PartFile], path: str | os.PathLike[str]) -> ScoreStatistics:
    """Write one scores file of all rows in the order of the images, whole or not at all.

    Rows go from file to file in blocks of some megabytes, however large the parts are. If all
    parts were scored alike, with one engine and batch size, the file has the same bytes as that of
    a run over all images, and such a run finds it finished.

    Args:
        parts: Of one job in their order; see :func:`find_parts`.
        path: Where to, ending in ``.npz``.

    Returns:
        The statistics of all rows.

    Raises:
        FileError: If a part cannot be read or does not fit the others, or ``path`` cannot be
            written.
    """
    sets: list[Scores] = []
    for file in parts:
        if file.is_statistics:
            raise FileError(
                f"{file.path} holds statistics and no rows, so no scores can be written. "
                "Name an output that ends in .json for the statistics of all parts."
            )
        if (one := _mapped_scores(file.path)) is not None:
            sets.append(one)
    total = merge_statistics(parts)
    origin = _merged_origin(parts, total)
    with atomic_write(path) as temporary, NpzStream(temporary) as archive:

        def join(name: str, attribute: str) -> None:
            arrays = [getattr(one, attribute) for one in sets]
            if arrays[0] is not None:
                shape, dtype = (total.n, *arrays[0].shape[1:]), np.result_type(*arrays)
                rows = max(1, _BLOCK // arrays[0][0].size)
                starts = ((a, start) for a in arrays for start in range(0, len(a), rows))
                archive.pieces(name, shape, dtype, (a[s : s + rows] for a, s in starts))

        join(sets[0].input, "values")
        join("labels", "labels")
        join("features", "features")
        if origin is not None:
            archive.array("origin", np.array(json.dumps(origin, sort_keys=True), np.str_))
        join("ids", "ids")
        if total.classes is not None:
            archive.array("classes", np.array(total.classes, np.str_))
    return total


def _merged_origin(parts: Sequence[PartFile], total: ScoreStatistics) -> dict[str, Any] | None:
    """How the whole was made; ``None`` if a part does not say, or was made in another way."""
    try:
        origins = [json.loads(str(read_npz(p.path, ["origin"])["origin"])) for p in parts]
        if any(origin["model"] != origins[0]["model"] for origin in origins):
            return None
        lists = {
            name: list(chain.from_iterable(origin[name] for origin in origins))
            for name in ("shards", "left_out")
        }
    except (ValueError, KeyError, TypeError):
        return None
    return {**origins[0], **lists, "n": total.n, "k": total.k}


def statistics_of_npz(path: Path) -> ScoreStatistics | None:
    """The statistics of a scores file, however large, in little memory; ``None`` without rows.

    Raises:
        FileError: If it cannot be read or used, naming the row.
    """
    scores = _mapped_scores(path)
    return None if scores is None else ScoreStatistics.of(scores)


def _mapped_scores(path: Path) -> Scores | None:
    """The scores of an archive, which stay on disk; ``None`` if it has no rows."""
    with open_npz(path) as archive:
        if damaged := archive.zip.testzip():
            raise ValueError(f"{damaged} has another checksum")
    found = read_npz(path, mapped=True)
    kind = the_kind(path, found)
    if len(found[kind]) == 0:
        return None
    rest: dict[str, Any] = {
        name: found.get(name) for name in ("labels", "features", "ids", "classes")
    }
    with naming(path):
        return Scores(found[kind], kind, **rest, source=str(path))
