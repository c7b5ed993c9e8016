"""Statistics of scores that add up, so that rows never have to meet in one place."""

from __future__ import annotations

import base64
import copy
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    GUARD_FROM,
    check_classes,
    check_count,
    check_not_negative,
    check_range,
    check_scores,
)
from shiftcal.errors import FileError, InputError
from shiftcal.files import atomic_write, checksum_of, parsing, read_json
from shiftcal.metrics import Binning, BinTable, check_binning, check_bins
from shiftcal.numerics import temperature as range_status
from shiftcal.numerics.binning import (
    BinSums,
    debiased_error,
    expected_error,
    largest_error,
    largest_residual,
    smooth_error,
)
from shiftcal.numerics.samples import area_under_risk
from shiftcal.numerics.sketch import (
    CONFIDENCE_UNIT,
    EXACT_BITS,
    CellSums,
    cell_of,
    ece_range,
    exact_sum,
    fixed_square_sum,
    fixed_sum,
)
from shiftcal.numerics.softmax import p_max, softmax, top1_square_losses
from shiftcal.numerics.temperature import (
    BETAS,
    FRACTION_BITS,
    Likelihood,
    Moments,
    TemperatureSolution,
    find_zero,
    ladder_sums,
    softmax_moments,
)
from shiftcal.scores import Scores
from shiftcal.types import FitStatus, Labels, Logits

# Longer than any description of a part; nothing larger is parsed.
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Part:
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

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_text(cls, path: Path, text: str) -> Self:
        """The part that a JSON text describes; raises FileError, naming the file."""
        try:
            node = json.loads(text) if len(text) <= _LONGEST else None
        except (ValueError, RecursionError):
            node = None
        return cls.from_node(path, node)

    @classmethod
    def from_node(cls, path: Path, node: object) -> Self:
        """The part that a JSON object describes; raises FileError, naming the file."""
        given = node if isinstance(node, dict) else {}
        values = {field.name: given.get(field.name) for field in fields(cls)}
        numbers = [value for name, value in values.items() if name != "key"]
        if all(type(n) is int and n >= 0 for n in numbers) and type(values["key"]) is str:
            part = cls(**values)  # type: ignore[arg-type]
            if 1 <= part.shard <= part.of and part.first <= part.stop <= part.n_images:
                return part
        raise FileError(f"{path} is damaged: {values} does not describe a part. Score it again.")


# Elements a block: 16 MB of double precision, enough for all threads to have their part.
_BLOCK = 1 << 21


def checked_blocks(scores: Scores) -> Iterator[tuple[Logits, Labels | None]]:
    """Finite logits of some rows at a time, with their labels; the scores may stay on disk.

    Raises:
        InputError: If values are not what they are said to be, naming the file and the row.
    """
    rows = max(1, _BLOCK // scores.k)
    for start in range(0, scores.n, rows):
        part = slice(start, min(start + rows, scores.n))
        labels = None if scores.labels is None else scores.labels[part]
        yield _logits(scores, part), labels


def _logits(scores: Scores, part: slice) -> Logits:
    values = np.asarray(scores.values[part])
    try:
        # A few rows may look like probabilities by chance, and must not fail where many pass.
        return check_scores(values, input=scores.input, guard_from=GUARD_FROM)
    except InputError as error:
        kind = FileError if scores.source else InputError
        counted = f" Rows are counted from row {part.start}." if part.start else ""
        raise kind(f"{scores.source or 'scores'}: {error}{counted}") from error


# --------------------------------------------------------------------------------------
# Totals over rows, as whole numbers: what rows add, and what follows from the totals.
# --------------------------------------------------------------------------------------

# Confidences are summed as whole multiples of 2**-40, so their squares as those of 2**-80.
CONFIDENCE_BITS = 40
OF_CONFIDENCE = ("rows", "confidence", "confidence_squared")
OF_LABELS = ("correct", "constant", "log_sum", "brier", "top1_brier", "regret", "gain")
LADDER = 3 * len(BETAS)
_BITS = {"correct": 0, "top1_brier": 30, "regret": EXACT_BITS, "gain": EXACT_BITS}


@dataclass(frozen=True)
class Totals:
    """Totals that add up without rounding, in any order.

    Attributes:
        sums: ``rows``; ``confidence`` and ``confidence_squared`` in their units; and with labels
            ``correct`` rows, ``constant`` rows (all logits equal), and the sums of ``log sum
            exp(z - max z)``, of both Brier scores, of ``max z - z[label]`` (``regret``) and of
            ``z[label] - mean z`` (``gain``).
        ladder: Sums of moments at the ladder of temperatures; empty without labels.
    """

    sums: Mapping[str, int]
    ladder: tuple[int, ...] = ()

    @property
    def labelled(self) -> bool:
        """Whether labels were counted."""
        return bool(self.ladder)

    def __add__(self, other: Totals) -> Totals:
        sums = {name: self.sums[name] + other.sums[name] for name in self.sums}
        ladder = (a + b for a, b in zip(self.ladder, other.ladder, strict=True))
        return Totals(sums, tuple(ladder))

    @property
    def mean_confidence(self) -> float:
        """Mean of p_max; every row is rounded to 5e-13."""
        return self.sums["confidence"] / (self.sums["rows"] << CONFIDENCE_BITS)

    @property
    def sd_confidence(self) -> float:
        """Standard deviation of p_max, from whole numbers: nothing cancels."""
        n, total = self.sums["rows"], self.sums["confidence"]
        variance = n * self.sums["confidence_squared"] - total**2
        return float((variance / (n * n << 2 * CONFIDENCE_BITS)) ** 0.5)

    def mean(self, name: str) -> float:
        """Mean over rows of a sum that needs labels."""
        bits = _BITS.get(name, FRACTION_BITS)
        return self.sums[name] / (self.sums["rows"] << bits)

    def likelihood(self) -> Likelihood:
        """The likelihood at every temperature."""
        unit = self.sums["rows"] << FRACTION_BITS
        moments = np.array([total / unit for total in self.ladder]).reshape(3, -1)
        regret = self.mean("regret")
        return Likelihood(moments, regret=regret, at_one=self.mean("log_sum") + regret)


def totals_of(
    logits: Logits, labels: Labels | None
) -> tuple[Totals, NDArray[np.float64], NDArray[np.bool_]]:
    """What a block of rows adds, whatever stands around it.

    Returns:
        The totals, and for each row its confidence and whether it is correct; without labels
        none is.
    """
    confidence = p_max(logits)
    sums = {
        "rows": len(logits),
        "confidence": fixed_sum(confidence, CONFIDENCE_BITS),
        "confidence_squared": fixed_square_sum(confidence, CONFIDENCE_BITS),
    }
    if labels is None:
        return Totals(sums), confidence, np.zeros(len(logits), np.bool_)
    correct = logits.argmax(axis=1) == labels
    ladder, log_sums, squares = ladder_sums(logits)
    z = logits.astype(np.float64)
    of_label = z[np.arange(len(z)), labels]
    regret = z.max(axis=1) - of_label
    brier = squares - 2 * np.exp(-regret - log_sums) + 1
    sums |= {
        "correct": int(correct.sum()),
        "constant": int((z.max(axis=1) == z.min(axis=1)).sum()),
        "log_sum": fixed_sum(log_sums, FRACTION_BITS),
        "brier": fixed_sum(brier, FRACTION_BITS),
        "top1_brier": fixed_sum(top1_square_losses(confidence, correct), _BITS["top1_brier"]),
        "regret": exact_sum(regret),
        "gain": exact_sum(of_label - z.mean(axis=1)),
    }
    return Totals(sums, tuple(ladder)), confidence, correct


# --------------------------------------------------------------------------------------
# Statistics of scores that add up: accuracy, ECE, NLL and temperature of any number of rows.
# --------------------------------------------------------------------------------------

# A cell of confidence is 1.2e-4 wide in the middle, 6e-5 at 0.99; all of them take 0.5 MB.
PRECISION, FINEST = 7, 14
# Fineness of the cells of a class: k classes are k tables.
_CLASS_PRECISION = 3
_WIDTH_BINS = 15
_MOST_ROWS = (1 << 33) - 1


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
                                          of usual size; :meth:`refined` gives all digits
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
        totals: Whole numbers that were summed.
        cells: Rows counted in cells of confidence.
        class_cells: The same for the column of each class, if ``classwise_ece`` is wanted.

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
    totals: Totals
    cells: CellSums
    class_cells: CellSums | None = None

    @classmethod
    def of(
        cls, scores: Scores, *, precision: int = PRECISION, classwise: bool = False
    ) -> ScoreStatistics:
        """The statistics of scores, in memory or mapped from a file.

        Args:
            scores: The rows.
            precision: Fineness of the cells, 1 to 14.
            classwise: Whether to count every class too, for ``classwise_ece``; 32 kB a class.

        Raises:
            InputError: If values are not what they should be, naming the file and the row.
        """
        finest = check_count(precision, name="precision", most=FINEST)
        cells = CellSums.empty(precision=finest, width_bins=_WIDTH_BINS)
        class_cells, totals = None, None
        if classwise and scores.labels is not None:
            class_cells = CellSums.empty(
                precision=_CLASS_PRECISION, width_bins=_WIDTH_BINS, series=scores.k
            )
        for logits, labels in checked_blocks(scores):
            block, confidence, correct = totals_of(logits, labels)
            cells.add(confidence[:, None], correct[:, None])
            if class_cells is not None and labels is not None:
                class_cells.add(softmax(logits), labels[:, None] == np.arange(scores.k))
            totals = block if totals is None else totals + block
        assert totals is not None, "scores have at least one row"
        return cls(scores.k, scores.classes, totals, cells, class_cells)

    @classmethod
    def of_rows(
        cls,
        logits: object,
        labels: object = None,
        *,
        precision: int = PRECISION,
        classwise: bool = False,
    ) -> ScoreStatistics:
        """The statistics of logits ``(n, k)``, in memory or mapped, with labels ``(n,)`` if known.

        For probabilities use ``ScoreStatistics.of(Scores(probs, "probabilities", labels))``.
        """
        scores = Scores(logits, labels=labels)  # type: ignore[arg-type]
        return cls.of(scores, precision=precision, classwise=classwise)

    @classmethod
    def merged(cls, parts: Iterable[ScoreStatistics]) -> ScoreStatistics:
        """The statistics of all rows of all parts, which are iterated over once."""
        total: ScoreStatistics | None = None
        for part in parts:
            total = part if total is None else total + part
        if total is None:
            raise InputError("there are no statistics to merge; give at least one part.")
        return total

    def __add__(self, other: object) -> ScoreStatistics:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        if self.k != other.k:
            raise InputError(
                "statistics can be added if they have the same classes; these have "
                f"{self.k} and {other.k}. All must come from one model."
            )
        if self.labelled != other.labelled:
            raise InputError(
                "statistics can be added if all rows have labels or none has; only one part has. "
                "Score all parts with their labels, or all without."
            )
        if self._settings != other._settings:
            raise InputError(
                "statistics can be added if they have the same precision and classwise; these have "
                f"{self._settings} and {other._settings}."
            )
        if self.n + other.n > _MOST_ROWS:
            raise InputError(f"statistics count at most {_MOST_ROWS:,} rows.")
        classes = _common(self.classes, other.classes)
        cells, class_cells = copy.deepcopy((self.cells, self.class_cells))
        cells.merge(other.cells)
        if class_cells is not None and other.class_cells is not None:
            class_cells.merge(other.class_cells)
        return ScoreStatistics(self.k, classes, self.totals + other.totals, cells, class_cells)

    def __radd__(self, other: object) -> ScoreStatistics:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        mine, theirs = ((s.k, s.classes, s.totals, s._settings) for s in (self, other))
        return mine == theirs and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self._tables(), other._tables(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        labels = "with" if self.labelled else "without"
        return f"<ScoreStatistics of {self.n:,} rows, {self.k} classes, {labels} labels>"

    @property
    def _settings(self) -> tuple[int, bool]:
        return self.cells.precision, self.class_cells is not None

    def _tables(self) -> list[NDArray[Any]]:
        both = (self.cells, self.class_cells)
        return [table for cells in both if cells is not None for table in cells.arrays().values()]

    @property
    def nbytes(self) -> int:
        """Size of the tables in memory, which does not depend on the number of rows."""
        return sum(table.nbytes for table in self._tables())

    @property
    def n(self) -> int:
        """Rows counted."""
        return self.totals.sums["rows"]

    @property
    def labelled(self) -> bool:
        """Whether the rows had labels; without them only the confidence is known."""
        return self.totals.labelled

    @property
    def mean_confidence(self) -> float:
        """Mean of the raw p_max."""
        return self.totals.mean_confidence

    @property
    def sd_confidence(self) -> float:
        """Standard deviation of the raw p_max."""
        return self.totals.sd_confidence

    def accuracy(self) -> float:
        """Share of rows whose first largest logit is the label's."""
        return self._with_labels("accuracy").mean("correct")

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
            return value - CONFIDENCE_UNIT / 2, value + CONFIDENCE_UNIT / 2
        low, high = ece_range(self.cells, n_bins)
        return min(low, value), max(high, value)

    def mce(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.mce` of the rows."""
        return largest_error(self._bins("mce", n_bins, binning))

    def debiased_ece(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.debiased_ece` of the rows."""
        return debiased_error(self._bins("debiased_ece", n_bins, binning, whole_ties=True))

    def classwise_ece(self, *, n_bins: int = 15, binning: Binning = "size") -> float:
        """:func:`shiftcal.classwise_ece` of the rows, from coarser cells."""
        self._with_labels("classwise_ece")
        cells = self.class_cells
        if cells is None:
            raise InputError("classwise_ece needs ScoreStatistics.of(..., classwise=True).")
        errors = [
            expected_error(_bins_of(cells, n_bins, binning, series=column))
            for column in range(self.k)
        ]
        return float(np.mean(errors))

    def ks_error(self) -> float:
        """:func:`shiftcal.ks_error` of the rows, evaluated between cells."""
        self._with_labels("ks_error")
        return largest_residual(self.cells.groups())

    def smooth_ece(self) -> float:
        """:func:`shiftcal.smooth_ece` of the rows."""
        self._with_labels("smooth_ece")
        groups = self.cells.groups()
        residual = (groups.confidence - groups.correct) / groups.n
        return smooth_error(groups.confidence / groups.count, residual)

    def aurc(self) -> float:
        """:func:`shiftcal.aurc` of the rows."""
        self._with_labels("aurc")
        return area_under_risk(self.cells.groups())

    def top1_brier(self) -> float:
        """:func:`shiftcal.top1_brier` of the rows."""
        return self._with_labels("top1_brier").mean("top1_brier")

    def nll(self, temperature: float = 1.0) -> float:
        """Mean of ``-log softmax(z / T)[label]``, no row's loss being cut off.

        Args:
            temperature: T, from 0.0086 to 128.
        """
        totals = self._with_labels("nll")
        t = check_not_negative(temperature, name="temperature")
        _refuse_unreachable((t, t))
        return totals.likelihood().nll(1 / t)

    def brier(self) -> float:
        """:func:`shiftcal.brier` of the raw softmax."""
        return self._with_labels("brier").mean("brier")

    @property
    def temperature(self) -> float:
        """The temperature of least NLL between 0.01 and 100, from the totals alone."""
        return self.temperature_fit().temperature

    def temperature_fit(
        self, *, t_range: tuple[float, float] = (0.01, 100.0)
    ) -> TemperatureSolution:
        """The temperature of least NLL, how the fit ended, and the NLL there.

        Args:
            t_range: Smallest and largest temperature allowed, within 0.0086 and 128.
        """
        totals = self._with_labels("temperature")
        ends = check_range(t_range, name="t_range")
        _refuse_unreachable(ends)
        return from_totals(totals, ends)

    def refined(
        self, parts: Sequence[Scores], *, t_range: tuple[float, float] = (0.01, 100.0)
    ) -> TemperatureSolution:
        """The same to all digits, for when the rows can be read again: one more pass, mostly.

        A pass needs of every part three sums only.

        Args:
            parts: The labelled scores these statistics were made of, in any split and order.
            t_range: Smallest and largest temperature allowed.

        Raises:
            InputError: If the parts have other rows than were counted, by their number.
        """
        start = self.temperature_fit(t_range=t_range)
        n = sum(part.n for part in parts)
        if n != self.n or any(part.labels is None for part in parts):
            raise InputError(
                f"refined needs the {self.n:,} labelled rows that were counted; the parts have "
                f"{n:,}{'' if n != self.n else ', not all with labels'}. Give all of them, once."
            )
        return refined(start, parts, t_range)

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
            FileError: If the file is missing, damaged, of another kind, or from a newer version.
        """
        statistics, _ = read_statistics(path)
        if statistics is None:
            raise FileError(
                f"{path} is of a part without any readable image, so it holds no statistics. "
                "`shiftcal merge` accepts it with the other parts."
            )
        return statistics

    def _bins(
        self, name: str, n_bins: int, binning: Binning, *, whole_ties: bool = False
    ) -> BinSums:
        self._with_labels(name)
        return _bins_of(self.cells, n_bins, binning, whole_ties=whole_ties)

    def _with_labels(self, name: str) -> Totals:
        if not self.labelled:
            raise InputError(
                f"{name} needs labels, and these {self.n:,} rows were counted without. Only their "
                "number and their confidence are known."
            )
        return self.totals


def _bins_of(
    cells: CellSums, n_bins: object, binning: object, *, series: int = 0, whole_ties: bool = False
) -> BinSums:
    m, kind = check_bins(n_bins, binning)
    if kind == "size":
        return cells.size_bins(m, series, whole_ties=whole_ties)
    if m != _WIDTH_BINS:
        raise InputError(f"statistics keep {_WIDTH_BINS} bins of equal width; got n_bins={m}.")
    return cells.width_bins(series)


def _common(left: tuple[str, ...] | None, right: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The names of the classes, which at least one of two parts may not know."""
    if left is None or right is None or left == right:
        return left or right
    column = next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
    raise InputError(
        "statistics can be added if they are of the same classes in the same order; column "
        f"{column} is {left[column]!r} in one and {right[column]!r} in another. All must come "
        "from one model."
    )


def _refuse_unreachable(ends: tuple[float, float]) -> None:
    low, high = REACH
    if not low <= ends[0] <= ends[1] <= high:
        raise InputError(
            f"statistics know temperatures from {low:.2g} to {high:g}; asked for was "
            f"{ends[0]:g}{'' if ends[0] == ends[1] else f' to {ends[1]:g}'}."
        )


# --------------------------------------------------------------------------------------
# Statistics in a file: JSON with a version and a checksum, tables packed inside it.
# --------------------------------------------------------------------------------------

FORMAT = "shiftcal-statistics"
VERSION = 2
# Higher levels take ten times as long to save a tenth of the size.
_LEVEL = 4
_KIND = "statistics of scores"
_FIX = "Write it again with `shiftcal score --statistics` or `shiftcal merge`."
# Larger than statistics of a hundred thousand classes with long names.
_LARGEST = 1 << 25
# A part without any readable image; the number of classes is not known either.
_EMPTY: dict[str, Any] = {"n_classes": 0, "classes": None, "sums": {}, "ladder": [], "cells": {}}


def write_statistics(
    path: str | os.PathLike[str], statistics: ScoreStatistics | None, part: Part | None
) -> None:
    """Write statistics atomically; the same statistics give the same bytes.

    Args:
        path: The file.
        statistics: Of the usual precision, and not classwise; ``None`` for a part without rows.
        part: Which part of a job they are, if one.
    """
    content = _EMPTY
    if statistics is not None:
        if statistics._settings != (PRECISION, False):
            raise InputError(f"statistics are written with precision={PRECISION}, not classwise.")
        content = {
            "n_classes": statistics.k,
            "classes": None if statistics.classes is None else list(statistics.classes),
            "sums": dict(statistics.totals.sums),
            "ladder": list(statistics.totals.ladder),
            "cells": {name: _packed(t) for name, t in statistics.cells.arrays().items()},
        }
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"shiftcal {version('shiftcal')}",
        "part": None if part is None else part.to_dict(),
        **content,
    }
    document["checksum"] = checksum_of(document)
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(document, indent=0, allow_nan=False) + "\n", "utf-8")


def read_statistics(
    path: str | os.PathLike[str],
) -> tuple[ScoreStatistics | None, Part | None]:
    """The statistics in a file, ``None`` if it has no rows, and which part of a job they are.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    source = Path(path)
    with parsing(source, _KIND, fix=_FIX):
        if source.stat().st_size > _LARGEST:
            raise FileError(f"{source} is too large for statistics, which are below a megabyte.")
        document = read_json(source, _KIND, fix=_FIX)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise FileError(
                f"{source} does not hold statistics: it has no format {FORMAT!r}. "
                "They are what `shiftcal score --statistics` or `shiftcal merge` writes."
            )
        written = document.get("version")
        if written != VERSION:
            raise FileError(
                f"{source} has format version {written!r}, written by "
                f"{document.get('written_by')}; shiftcal {version('shiftcal')} reads version "
                f"{VERSION}. Upgrade shiftcal, or write it again."
            )
        if document.pop("checksum", None) != checksum_of(document):
            raise FileError(f"{source} is damaged: its checksum does not fit its content. {_FIX}")
        node = document.get("part")
        part = None if node is None else Part.from_node(source, node)
        if {name: document.get(name) for name in _EMPTY} == _EMPTY:
            return None, part
        k = check_count(document["n_classes"], name="n_classes", least=2)
        names, sums, ladder = document["classes"], document["sums"], document["ladder"]
        wanted = (*OF_CONFIDENCE, *OF_LABELS) if ladder else OF_CONFIDENCE
        numbers = [*sums.values(), *ladder]
        if set(sums) != set(wanted) or len(ladder) not in (0, LADDER):
            raise InputError(f"the sums are not those of {FORMAT} version {VERSION}")
        if not all(type(number) is int for number in numbers):
            raise InputError("it holds something else where a whole number belongs")
        cells = CellSums.empty(precision=PRECISION, width_bins=_WIDTH_BINS)
        for name, table in cells.arrays().items():
            setattr(cells, name, _unpacked(document["cells"][name], like=table))
        totals = Totals({name: sums[name] for name in wanted}, tuple(ladder))
        classes = None if names is None else check_classes(names, k=k)
        statistics = ScoreStatistics(k, classes, totals, cells)
        if not (_is_sound(statistics) and (not ladder or _labels_are_sound(statistics))):
            raise InputError("its numbers contradict one another")
        return statistics, part


def _is_sound(statistics: ScoreStatistics) -> bool:
    """Whether there are rows that have these cells and confidences."""
    cells, n, sums = statistics.cells, statistics.n, statistics.totals.sums
    count, correct, confidence, width = cells.count, cells.correct, cells.confidence, cells.width
    held = count > 0
    where = np.nonzero(held)[1]
    ends = (cells.least[held], cells.most[held])
    in_place = [
        ((end >= 0) & (end <= 1)).all() and (cell_of(end, PRECISION) == where).all() for end in ends
    ]
    rows = count * 1.0  # whole numbers of 2**-30 are exact in double precision up to 2**23 rows
    low, high = (
        rows * np.where(held, end, 0) / CONFIDENCE_UNIT for end in (cells.least, cells.most)
    )
    total, squares = sums["confidence"], sums["confidence_squared"]
    in_cells = int(confidence.sum()) << 10
    return bool(
        n == count.sum() > 0
        and (correct >= 0).all()
        and (count >= correct).all()
        and all(in_place)
        and (confidence >= low * (1 - 1e-12) - rows).all()
        and (confidence <= high * (1 + 1e-12) + rows).all()
        and (width >= 0).all()
        and (width[1] <= width[0]).all()
        and width.sum(axis=(1, 2)).tolist() == [count.sum(), correct.sum(), confidence.sum()]
        and n << CONFIDENCE_BITS >= total >= (n << CONFIDENCE_BITS) // statistics.k - n
        and total**2 <= n * squares
        and squares <= total << CONFIDENCE_BITS
        and abs(in_cells - total) <= n * ((1 << 9) + 1)
    )


def _labels_are_sound(statistics: ScoreStatistics) -> bool:
    """Whether the sums that need labels are possible."""
    n, sums, ladder = statistics.n, statistics.totals.sums, statistics.totals.ladder
    unit = n << FRACTION_BITS
    # Of a row: the log of a sum of k exponentials, none above 1, the greatest 1.
    most = math.ceil(unit * math.log(statistics.k)) + n
    means, variances, thirds = (ladder[i : i + LADDER // 3] for i in range(0, LADDER, LADDER // 3))
    correct = int(statistics.cells.correct.sum())
    return (
        sums["correct"] == correct
        and 0 <= sums["constant"] <= n
        and -n <= sums["log_sum"] <= most
        and -n <= sums["brier"] <= 2 * unit + n
        and 0 <= sums["top1_brier"] <= n << _BITS["top1_brier"]
        and (sums["regret"] == 0 or (sums["regret"] > 0 and correct < n))
        and all(-most <= mean <= n for mean in means)
        and all(-n <= variance <= unit << 12 for variance in variances)
        and all(abs(third) <= unit << 12 for third in thirds)
    )


def _packed(table: NDArray[Any]) -> str:
    raw = np.ascontiguousarray(table, dtype=table.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(raw, _LEVEL)).decode("ascii")


def _unpacked(text: str, *, like: NDArray[Any]) -> NDArray[Any]:
    """The table, if it has the right size; nothing larger is ever unpacked."""
    unpack = zlib.decompressobj()
    raw = unpack.decompress(base64.b64decode(text, validate=True), like.nbytes + 1)
    table = np.frombuffer(raw, dtype=like.dtype.newbyteorder("<"))
    return table.astype(like.dtype).reshape(like.shape)


# --------------------------------------------------------------------------------------
# The temperature of least negative log-likelihood, from totals alone or with another look.
# --------------------------------------------------------------------------------------

# The temperatures between which the ladder tells the likelihood.
REACH = (1 / float(BETAS[-1]), 1 / float(BETAS[0]))


def from_totals(totals: Totals, t_range: tuple[float, float]) -> TemperatureSolution:
    """The best temperature, or the end of the range that the likelihood points to and why."""
    likelihood = totals.likelihood()
    ends = (1 / t_range[1], 1 / t_range[0])
    beta = likelihood.minimum(ends) if totals.sums["regret"] else None
    if beta is not None:
        return TemperatureSolution(1 / beta, FitStatus("converged"), likelihood.nll(beta))
    if totals.sums["regret"] == 0:
        flat = totals.sums["constant"] == totals.sums["rows"]
        lower, why = not flat, range_status.FLAT if flat else range_status.ERROR_FREE
    elif likelihood.slope(ends[1]) <= 0:
        lower, why = True, range_status.BELOW
    else:
        lower = False
        why = range_status.ABOVE if totals.sums["gain"] > 0 else range_status.CHANCE
    status = (range_status.at_lower_bound if lower else range_status.at_upper_bound)(t_range, why)
    temperature = t_range[0] if lower else t_range[1]
    return TemperatureSolution(temperature, status, likelihood.nll(1 / temperature))


def refined(
    start: TemperatureSolution, parts: Iterable[Scores], t_range: tuple[float, float]
) -> TemperatureSolution:
    """The temperature to the last digits, by looking at all rows again, mostly once.

    Args:
        start: What the totals said; returned if it is an end of the range.
        parts: Labelled scores, gone through once for every look.
        t_range: Smallest and largest temperature allowed.
    """
    if not start.status.converged:
        return start
    ends = (1 / t_range[1], 1 / t_range[0])
    found = find_zero(lambda beta: _look(parts, beta), ends, 1 / start.temperature)
    if not found.converged or found.here is None:
        return start
    here, r = found.here, found.beta / found.here.beta - 1
    nll = here.nll + r * (here.slope + r * (here.curvature / 2 + r * here.third / 6))
    return TemperatureSolution(1 / found.beta, FitStatus("converged"), nll)


def _look(parts: Iterable[Scores], beta: float) -> Moments | None:
    """The moments of all rows, from the sums of every block."""
    sums, rows, at = np.zeros(len(Moments._fields) - 1), 0, beta
    for part in parts:
        for logits, labels in checked_blocks(part):
            assert labels is not None
            block = softmax_moments((logits.astype(np.float64), labels, None), beta)
            assert block is not None
            at = block.beta
            sums += len(logits) * np.array(block[1:])
            rows += len(logits)
    return Moments(at, *(sums / rows).tolist()) if rows else None
