"""Statistics of scores that add up, so that rows never have to meet in one place.

:func:`find_parts` finds the parts of one job; :func:`merge_scores` and :func:`merge_statistics`
put their rows or their statistics together.
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    check_classes,
    check_count,
    check_not_negative,
    check_range,
    check_scores,
)
from shiftcal.errors import FileError, InputError
from shiftcal.files import (
    NpzStream,
    atomic_write,
    checksum_of,
    find,
    npy_head,
    open_npz,
    parsing,
    read_document,
    read_npz,
    write_document,
)
from shiftcal.metrics import Binning, BinTable, check_binning, check_bins
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
    TemperatureSolution,
    end_status,
    ladder_sums,
)
from shiftcal.scores import Scores
from shiftcal.scores_io import KINDS, the_kind
from shiftcal.types import FitStatus, Labels, Logits

# Elements in a block: 16 MB of double precision, enough for all threads to have their part.
_BLOCK = 1 << 21
# Confidences are summed as whole multiples of 2**-40, so their squares as those of 2**-80.
CONFIDENCE_BITS = 40
OF_CONFIDENCE = ("rows", "confidence", "confidence_squared")
OF_LABELS = ("correct", "constant", "log_sum", "brier", "top1_brier", "regret", "gain")
_BITS = {"correct": 0, "top1_brier": 30, "regret": EXACT_BITS, "gain": EXACT_BITS}
# Moments at the ladder of temperatures, and the temperatures between which it gives the likelihood.
LADDER = 3 * len(BETAS)
REACH = (1 / float(BETAS[-1]), 1 / float(BETAS[0]))
# A cell of confidence is 1.2e-4 wide in the middle, 6e-5 at 0.99; all of them take 0.5 MB.
PRECISION, FINEST = 7, 14
# Fineness of the cells of a class: k classes are k tables.
_CLASS_PRECISION = 3
_WIDTH_BINS = 15
_MOST_ROWS = (1 << 33) - 1

FORMAT, VERSION = "shiftcal-statistics", 3
_KIND = "statistics of scores"
_FIX = "Write it again with `shiftcal score --statistics` or `shiftcal merge`."

# Bytes of an array held at once, and rows: of few classes, what is computed of a row is larger.
_STRETCH, _ROWS = 1 << 24, 1 << 15
# What a row has in addition to its scores, in the order in which scores files are written.
_ALONGSIDE = ("labels", "features", "ids")
_NO_ROWS = "none of the parts holds a row, so there is nothing to merge."


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

    @classmethod
    def from_node(cls, path: Path, node: object) -> Part:
        """The part that a JSON object describes; raises FileError, naming the file."""
        given = node if isinstance(node, dict) else {}
        values = {field.name: given.get(field.name) for field in fields(cls)}
        numbers = [value for name, value in values.items() if name != "key"]
        if all(type(n) is int and n >= 0 for n in numbers) and type(values["key"]) is str:
            part = cls(**values)  # type: ignore[arg-type]
            if 1 <= part.shard <= part.of and part.first <= part.stop <= part.n_images:
                return part
        raise FileError(f"{path} is damaged: {values} does not describe a part. Score it again.")


def checked_blocks(scores: Scores) -> Iterator[tuple[Logits, Labels | None]]:
    """Finite logits of some rows at a time, with their labels; the scores may stay on disk."""
    rows = max(1, _BLOCK // scores.k)
    for start in range(0, scores.n, rows):
        part = slice(start, min(start + rows, scores.n))
        values = np.asarray(scores.values[part])
        try:
            logits = check_scores(values, input=scores.input)
        except InputError as error:
            kind = FileError if scores.source else InputError
            counted = f" Rows are counted from row {start}." if start else ""
            raise kind(f"{scores.source or 'scores'}: {error}{counted}") from error
        yield logits, None if scores.labels is None else scores.labels[part]


def _sums_of(
    logits: Logits, labels: Labels | None
) -> tuple[dict[str, int], tuple[int, ...], NDArray[np.float64], NDArray[np.bool_]]:
    """Sums and ladder of a block of rows, and for each row its confidence and correctness."""
    confidence = p_max(logits)
    sums = {
        "rows": len(logits),
        "confidence": fixed_sum(confidence, CONFIDENCE_BITS),
        "confidence_squared": fixed_square_sum(confidence, CONFIDENCE_BITS),
    }
    if labels is None:
        return sums, (), confidence, np.zeros(len(logits), np.bool_)
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
    return sums, tuple(ladder), confidence, correct


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
    sums: Mapping[str, int]
    ladder: tuple[int, ...]
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
        class_cells = None
        if classwise and scores.labels is not None:
            class_cells = CellSums.empty(
                precision=_CLASS_PRECISION, width_bins=_WIDTH_BINS, series=scores.k
            )
        sums: dict[str, int] = {}
        ladder: tuple[int, ...] = ()
        for logits, labels in checked_blocks(scores):
            block, steps, confidence, correct = _sums_of(logits, labels)
            cells.add(confidence[:, None], correct[:, None])
            if class_cells is not None and labels is not None:
                class_cells.add(softmax(logits), labels[:, None] == np.arange(scores.k))
            sums, ladder = _added((sums, ladder), (block, steps)) if sums else (block, steps)
        return cls(scores.k, scores.classes, sums, ladder, cells, class_cells)

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
        total = sum(parts)
        if not isinstance(total, ScoreStatistics):
            raise InputError("there are no statistics to merge; give at least one part.")
        return total

    def __add__(self, other: object) -> ScoreStatistics:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        for what, mine, theirs in (
            ("number of classes", self.k, other.k),
            ("labels for all rows or for none", self.labelled, other.labelled),
            ("precision and classwise", self._settings, other._settings),
        ):
            if mine != theirs:
                raise InputError(
                    f"statistics that are added must have the same {what}; these have {mine} and "
                    f"{theirs}. All parts must be scored alike, by one model."
                )
        if self.n + other.n > _MOST_ROWS:
            raise InputError(f"statistics count at most {_MOST_ROWS:,} rows.")
        classes = self.classes or other.classes
        if None not in (self.classes, other.classes) and self.classes != other.classes:
            pairs = enumerate(zip(self.classes or (), other.classes or (), strict=True))
            column, (left, right) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
            raise InputError(
                "statistics that are added must have the same classes in the same order; column "
                f"{column} is {left!r} in one and {right!r} in another."
            )
        cells, class_cells = copy.deepcopy((self.cells, self.class_cells))
        cells.merge(other.cells)
        if class_cells is not None and other.class_cells is not None:
            class_cells.merge(other.class_cells)
        sums, ladder = _added((self.sums, self.ladder), (other.sums, other.ladder))
        return ScoreStatistics(self.k, classes, sums, ladder, cells, class_cells)

    def __radd__(self, other: object) -> ScoreStatistics:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        ours, theirs = ((s.k, s.classes, s.sums, s.ladder, s._settings) for s in (self, other))
        return ours == theirs and all(
            np.array_equal(ours, theirs)
            for ours, theirs in zip(self._tables(), other._tables(), strict=True)
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
        self._needs_labels("classwise_ece")
        cells = self.class_cells
        if cells is None:
            raise InputError("classwise_ece needs ScoreStatistics.of(..., classwise=True).")
        bins = (_bins_of(cells, n_bins, binning, series=column) for column in range(self.k))
        return float(np.mean([expected_error(each) for each in bins]))

    def ks_error(self) -> float:
        """:func:`shiftcal.ks_error` of the rows, evaluated between cells."""
        self._needs_labels("ks_error")
        return largest_residual(self.cells.groups())

    def smooth_ece(self) -> float:
        """:func:`shiftcal.smooth_ece` of the rows."""
        self._needs_labels("smooth_ece")
        groups = self.cells.groups()
        residual = (groups.confidence - groups.correct) / groups.n
        return smooth_error(groups.confidence / groups.count, residual)

    def aurc(self) -> float:
        """:func:`shiftcal.aurc` of the rows."""
        self._needs_labels("aurc")
        return area_under_risk(self.cells.groups())

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
            raise FileError(
                f"{path} is of a part without any readable image, so it holds no statistics. "
                "`shiftcal merge` accepts it with the other parts."
            )
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

    def _bins(
        self, name: str, n_bins: int, binning: Binning, *, whole_ties: bool = False
    ) -> BinSums:
        self._needs_labels(name)
        return _bins_of(self.cells, n_bins, binning, whole_ties=whole_ties)

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


def _added(
    one: tuple[Mapping[str, int], tuple[int, ...]], other: tuple[Mapping[str, int], tuple[int, ...]]
) -> tuple[dict[str, int], tuple[int, ...]]:
    sums = {name: one[0][name] + other[0][name] for name in one[0]}
    return sums, tuple(a + b for a, b in zip(one[1], other[1], strict=True))


def _bins_of(
    cells: CellSums, n_bins: object, binning: object, *, series: int = 0, whole_ties: bool = False
) -> BinSums:
    m, kind = check_bins(n_bins, binning)
    if kind == "size":
        return cells.size_bins(m, series, whole_ties=whole_ties)
    if m != _WIDTH_BINS:
        raise InputError(f"statistics keep {_WIDTH_BINS} bins of equal width; got n_bins={m}.")
    return cells.width_bins(series)


def write_statistics(
    path: str | os.PathLike[str], statistics: ScoreStatistics | None, part: Part | None
) -> None:
    """Write statistics atomically; the same statistics give the same bytes.

    Args:
        path: The file.
        statistics: Of the usual precision, and not classwise; ``None`` for a part without rows.
        part: Which part of a job they are, if one.
    """
    content: dict[str, Any] = {"part": None if part is None else asdict(part)}
    if statistics is not None:
        if statistics._settings != (PRECISION, False):
            raise InputError(f"statistics are written with precision={PRECISION}, not classwise.")
        content |= {
            "n_classes": statistics.k,
            "classes": statistics.classes,
            "sums": statistics.sums,
            "ladder": statistics.ladder,
            "cells": {name: _packed(t) for name, t in statistics.cells.arrays().items()},
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
        node = document["part"]
        part = None if node is None else Part.from_node(source, node)
        if "sums" not in document:
            return None, part
        k = check_count(document["n_classes"], name="n_classes", least=2)
        names, sums, ladder = document["classes"], document["sums"], tuple(document["ladder"])
        wanted = (*OF_CONFIDENCE, *OF_LABELS) if ladder else OF_CONFIDENCE
        whole = all(type(number) is int for number in (*sums.values(), *ladder))
        if set(sums) != set(wanted) or len(ladder) not in (0, LADDER) or not whole:
            raise InputError(f"the sums are not those of {FORMAT} version {VERSION}")
        cells = CellSums.empty(precision=PRECISION, width_bins=_WIDTH_BINS)
        for name, table in cells.arrays().items():
            setattr(cells, name, _unpacked(document["cells"][name], like=table))
        classes = None if names is None else check_classes(names, k=k)
        statistics = ScoreStatistics(k, classes, {n: sums[n] for n in wanted}, ladder, cells)
        if not _is_sound(statistics):
            raise InputError("its numbers contradict one another")
        return statistics, part


def _is_sound(statistics: ScoreStatistics) -> bool:
    """Whether there are rows that have these cells and sums."""
    cells, sums, n, k = statistics.cells, statistics.sums, statistics.n, statistics.k
    total, squares, correct = sums["confidence"], sums["confidence_squared"], cells.correct.sum()
    possible = bool(
        n == cells.count.sum() > 0
        and ((cells.correct >= 0) & (cells.correct <= cells.count)).all()
        and (cells.width >= 0).all()
        and cells.width.sum(axis=(1, 2)).tolist() == [n, correct, cells.confidence.sum()]
        and n << CONFIDENCE_BITS >= total >= (n << CONFIDENCE_BITS) // k - n
        and total**2 <= n * squares
        and squares <= total << CONFIDENCE_BITS
        and abs((int(cells.confidence.sum()) << 10) - total) <= n * ((1 << 9) + 1)
    )
    if not possible or not statistics.ladder:
        return possible
    unit = n << FRACTION_BITS
    # Of a row: the log of a sum of k exponentials, none above 1, the greatest 1.
    most = math.ceil(unit * math.log(k)) + n
    return bool(
        sums["correct"] == correct
        and -n <= sums["log_sum"] <= most
        and -n <= sums["brier"] <= 2 * unit + n
        and 0 <= sums["top1_brier"] <= n << _BITS["top1_brier"]
        and (sums["regret"] == 0 or (sums["regret"] > 0 and correct < n))
    )


def _packed(table: NDArray[Any]) -> str:
    raw = np.ascontiguousarray(table, dtype=table.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(raw, 4)).decode("ascii")


def _unpacked(text: str, *, like: NDArray[Any]) -> NDArray[Any]:
    """The table, if it has the right size; nothing larger is ever unpacked."""
    unpack = zlib.decompressobj()
    raw = unpack.decompress(base64.b64decode(text, validate=True), like.nbytes + 1)
    table = np.frombuffer(raw, dtype=like.dtype.newbyteorder("<"))
    return table.astype(like.dtype).reshape(like.shape)


class Head(NamedTuple):
    """Type and shape of an array, before it is read."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def heads(path: Path) -> dict[str, Head]:
    """Every array of an archive by name, none of them read."""
    found = {}
    with open_npz(find(path)) as archive:
        for info in archive.zip.infolist():
            with archive.zip.open(info) as file:
                shape, _, dtype = npy_head(file)
            found[info.filename.removesuffix(".npy")] = Head(dtype, shape)
    return found


def stretches(path: Path, name: str) -> Iterator[NDArray[Any]]:
    """The rows of an array, in order and never all at once.

    Raises:
        FileError: If the archive is damaged or cut short.
    """
    with open_npz(path) as archive, archive.zip.open(f"{name}.npy") as file:
        (n, *rest), by_column, dtype = npy_head(file)
        if by_column and rest:
            raise FileError(
                f"{path}: {name} is stored column by column, and is read row by row. "
                "Save np.ascontiguousarray of it."
            )
        row = dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        rows = min(_ROWS, max(1, _STRETCH // max(1, row)))
        for start in range(0, n, rows):
            count = min(rows, n - start)
            yield np.frombuffer(file.read(count * row), dtype).reshape(count, *rest)
        if file.read(1):  # the end: only here is the archive's own checksum compared
            raise ValueError(f"{name} is longer than it says")


@dataclass(frozen=True)
class PartFile:
    """A file that holds a part.

    Attributes:
        path: The file: scores (``.npz``) or statistics (``.json``).
        part: Which part it says it is.
        note: All that a scores file says of the part.
    """

    path: Path
    part: Part
    note: dict[str, Any]


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
    for other in parts[1:]:
        mine, theirs = ((p.part.of, p.part.key, p.part.n_images) for p in (first, other))
        if mine != theirs:
            raise InputError(
                f"all parts must be of one job, cut alike; {first.path} and {other.path} differ in "
                f"the model, the images, an option, or the number of parts ({of} and "
                f"{other.part.of}). Merge the parts of one job at a time."
            )
    for one, other in itertools.pairwise(parts):
        if one.part.shard == other.part.shard:
            raise InputError(
                f"every part must be there once; part {one.part.shard} of {of} is in {one.path} "
                f"and in {other.path}. Leave one of them out."
            )
    if missing := sorted(set(range(1, of + 1)) - {file.part.shard for file in parts}):
        raise InputError(
            f"all {of} parts must be there; missing: {', '.join(map(str, missing))}. Score with "
            f"--shard {missing[0]}/{of} and so on, or name those files too."
        )
    return parts


def _part_file(file: Path) -> PartFile:
    suffix = file.suffix.lower()
    if suffix == ".json":
        part = read_statistics(file)[1]
        if part is not None:
            return PartFile(file, part, {})
    elif suffix == ".npz":
        stored = read_npz(file, ["part"])
        if stored:
            try:
                note = json.loads(str(stored["part"]))
            except (ValueError, RecursionError):
                note = None
            return PartFile(file, Part.from_node(file, note), note)
    raise FileError(
        f"{file} does not say which part of a job it is. Merge .npz or .json files that "
        "`shiftcal score --shard i/n` wrote; statistics of other rows are added in Python with "
        "ScoreStatistics.merged."
    )


def merge_statistics(parts: Sequence[PartFile]) -> ScoreStatistics:
    """The statistics of all rows of all parts, which are read one after the other.

    Raises:
        FileError: If a part cannot be read or does not fit the others, naming it.
    """
    total = None
    for file in parts:
        if file.path.suffix.lower() == ".json":
            one, _ = read_statistics(file.path)
        else:
            one = None if _is_empty(heads(file.path)) else statistics_of_npz(file.path)
        if one is not None:
            total = _total(total, one, file.path)
    if total is None:
        raise FileError(_NO_ROWS)
    return total


def _total(total: ScoreStatistics | None, one: ScoreStatistics, path: Path) -> ScoreStatistics:
    try:
        return one if total is None else total + one
    except InputError as error:
        raise FileError(f"{path} does not fit the other parts: {error}") from error


def merge_scores(parts: Sequence[PartFile], path: str | os.PathLike[str]) -> ScoreStatistics:
    """Write one scores file of all rows in the order of the images, whole or not at all.

    Rows go from file to file in stretches of some megabytes, however large the parts are. If all
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
    known: dict[Path, dict[str, Head]] = {}
    for file in parts:
        if file.path.suffix.lower() == ".json":
            raise FileError(
                f"{file.path} holds statistics and no rows, so no scores can be written. "
                "Name an output that ends in .json for the statistics of all parts."
            )
        found = heads(file.path)
        if not _is_empty(found):
            known[file.path] = found
    if not known:
        raise FileError(_NO_ROWS)
    first = next(iter(known))
    kind = the_kind(first, known[first])
    whole = _joint(known, kind)
    origin = _merged_origin(parts, *whole[kind].shape)
    counted: list[ScoreStatistics] = []
    with atomic_write(path) as temporary, NpzStream(temporary) as archive:
        for name in (kind, "labels", "features"):
            if (head := whole.get(name)) is not None:
                rows = _counted(counted, list(known)) if name == kind else _rows(name, known)
                archive.pieces(name, head.shape, head.dtype, rows)
        if origin is not None:
            archive.array("origin", np.array(json.dumps(origin, sort_keys=True), np.str_))
        if (ids := whole.get("ids")) is not None:
            archive.pieces("ids", ids.shape, ids.dtype, _rows("ids", known))
        if (classes := counted[0].classes) is not None:
            archive.array("classes", np.array(classes, np.str_))
    return counted[0]


def _merged_origin(parts: Sequence[PartFile], n: int, k: int) -> dict[str, Any] | None:
    """How the whole was made; ``None`` if a part does not say, or was made in another way."""
    try:
        origins = [json.loads(str(read_npz(p.path, ["origin"])["origin"])) for p in parts]
        arounds = {p.note["around"] for p in parts} - {None}
        keys = [key for p in parts for key in p.note["shard_keys"]]
        digests = [digest for p in parts for digest in p.note["image_digests"]]
        left_out = [bad for origin in origins for bad in origin["left_out"]]
        models = [origin["model"] for origin in origins]
        if len(arounds) != 1 or any(model != models[0] for model in models):
            return None
        return {
            **origins[0],
            "key": checksum_of({"shards": keys}),
            "around": arounds.pop(),
            "n": n,
            "k": k,
            "left_out": left_out,
            "images": {**origins[0]["images"], "digest": checksum_of({"images": digests})},
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_empty(found: dict[str, Head]) -> bool:
    """Whether no image of a part could be read; the classes are not known then either."""
    return any(found[kind].shape[:1] == (0,) for kind in KINDS if kind in found)


def _joint(known: dict[Path, dict[str, Head]], kind: str) -> dict[str, Head]:
    """Type and shape of each array of all rows.

    Raises:
        FileError: If those of the parts cannot stand below one another, naming two files.
    """
    first, joint = next(iter(known)), {}
    for name in (kind, *_ALONGSIDE):
        ours = _row_of(known[first].get(name))
        for path, found in known.items():
            if (theirs := _row_of(found.get(name))) != ours:
                raise FileError(
                    f"{path} holds {name} of {theirs} per row, and {first} of {ours}. Parts of one "
                    "job hold the same; score that part again."
                )
        if name in known[first]:
            each = [found[name] for found in known.values()]
            dtype, n = np.result_type(*(h.dtype for h in each)), sum(h.shape[0] for h in each)
            joint[name] = Head(dtype, (n, *each[0].shape[1:]))
    return joint


def _row_of(head: Head | None) -> str:
    if head is None:
        return "nothing"
    kind = "text" if head.dtype.kind == "U" else str(head.dtype)
    return " x ".join(map(str, (*head.shape[1:], kind)))


def _rows(name: str, files: dict[Path, Any]) -> Iterator[NDArray[Any]]:
    return itertools.chain.from_iterable(stretches(file, name) for file in files)


def _counted(counted: list[ScoreStatistics], files: Sequence[Path]) -> Iterator[NDArray[Any]]:
    """The scores of all files, counted on their way; the total is left in ``counted``."""
    for file in files:
        for scores in _scores(file):
            total = _total(counted[0] if counted else None, ScoreStatistics.of(scores), file)
            counted[:] = [total]
            yield scores.values


def statistics_of_npz(path: Path) -> ScoreStatistics:
    """The statistics of a scores file, however large, in little memory.

    Raises:
        FileError: If it cannot be read or used, naming the row.
    """
    return ScoreStatistics.merged(map(ScoreStatistics.of, _scores(path)))


def _scores(path: Path) -> Iterator[Scores]:
    """The scores of a file, some rows at a time, with labels and names of classes."""
    found = heads(path)
    kind = the_kind(path, found)
    known = read_npz(path, ["labels", "classes"])
    labels, start = known.get("labels"), 0
    if labels is not None and labels.shape[:1] != found[kind].shape[:1]:
        raise FileError(
            f"{path} is damaged: labels of shape {labels.shape} for scores of shape "
            f"{found[kind].shape}. Score that part again."
        )
    for values in stretches(path, kind):
        rows = slice(start, start + len(values))
        start += len(values)
        try:
            yield Scores(
                values,
                kind,
                labels=None if labels is None else labels[rows],
                classes=known.get("classes"),  # type: ignore[arg-type]
                source=str(path),
            )
        except InputError as error:
            raise FileError(f"{path}: {error}") from error
