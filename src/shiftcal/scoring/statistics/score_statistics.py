"""Statistics of scores that add up: accuracy, ECE, NLL and temperature of any number of rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shiftcal._checks import check_not_negative, check_range
from shiftcal.errors import InputError
from shiftcal.metrics import MetricSketch
from shiftcal.numerics.temperature.likelihood import TemperatureSolution
from shiftcal.scores import Scores
from shiftcal.scoring.statistics import temperature as fitting
from shiftcal.scoring.statistics.rows import checked_blocks
from shiftcal.scoring.statistics.totals import Totals, totals_of

if TYPE_CHECKING:
    from shiftcal.scoring.statistics.part import Part

# A cell of confidence is 1.2e-4 wide in the middle, 6e-5 at 0.99; all of them take 0.5 MB.
PRECISION = 7


@dataclass(frozen=True, eq=False)
class ScoreStatistics:
    """What is known of rows that are not there: half a megabyte for any number of them.

    Make it with :meth:`of` or :meth:`of_rows`, one pass over the rows in blocks; add those of
    other rows with ``+``, ``sum`` or :meth:`merged`. Everything is kept as whole numbers, and what
    a row adds does not depend on its neighbours: on one kind of processor any sharding in any order
    gives the same statistics to the last bit, and between processors the numbers read from them
    agree to 1e-11.

    ====================================  ========================================================
    accuracy                              exact
    mean and sd of confidence             up to rounding each p_max to 5e-13
    nll, brier                            up to 1e-13 a row, and 1e-8 at other temperatures
    temperature                           within 1e-6, relative; 3e-9 was the worst seen on sets
                                          of usual size; :meth:`refined` gives all digits
    ece with 15 bins of equal width       exact, up to rounding each confidence to 5e-10
    ece with equal size                   :meth:`ece_range` encloses the exact value; within 1e-8
                                          where all bins err to one side, else 3e-5 was the worst
                                          seen at 200,000 rows, 2e-4 at 20,000
    ====================================  ========================================================

    It can count 8,589,934,591 rows. Without labels only the confidence is known, which is what SAC
    needs of a target.

    Attributes:
        k: Number of classes.
        classes: Their names in the order of the columns, if known.
        totals: Whole numbers that were summed.
        cells: Rows counted in cells of confidence.

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
    cells: MetricSketch

    @classmethod
    def of(cls, scores: Scores) -> ScoreStatistics:
        """The statistics of the rows of a scores file, or of a part of them.

        Raises:
            InputError: If values are not what they are said to be, naming the file and the row.
        """
        cells = MetricSketch(precision=PRECISION)
        totals: Totals | None = None
        for logits, labels in checked_blocks(scores):
            block, confidence, correct = totals_of(logits, labels)
            cells.update_top1(confidence, correct)
            totals = block if totals is None else totals + block
        assert totals is not None, "scores have a row at least"
        return cls(scores.k, scores.classes, totals, cells)

    @classmethod
    def of_rows(cls, logits: object, labels: object = None) -> ScoreStatistics:
        """The statistics of logits ``(n, k)``, in memory or mapped, with labels ``(n,)`` if known.

        Probabilities go in as ``ScoreStatistics.of(Scores(values, "probabilities"))``.
        """
        return cls.of(Scores(logits, labels=labels))  # type: ignore[arg-type]

    @classmethod
    def merged(cls, parts: Iterable[ScoreStatistics]) -> ScoreStatistics:
        """The statistics of all rows of all parts, which are gone through one at a time."""
        total: ScoreStatistics | None = None
        for part in parts:
            total = part if total is None else total + part
        if total is None:
            raise InputError("there are no statistics to merge; give one part at least.")
        return total

    def __add__(self, other: object) -> ScoreStatistics:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        if self.k != other.k:
            raise InputError(
                "statistics can be added if they are of the same classes; these have "
                f"{self.k} and {other.k}. All must come from one model."
            )
        if self.labelled != other.labelled:
            raise InputError(
                "statistics can be added if all rows have labels or none has; of these only one "
                "part has. Score all parts with their labels, or all without."
            )
        classes = _common(self.classes, other.classes)
        return ScoreStatistics(
            self.k, classes, self.totals + other.totals, self.cells + other.cells
        )

    def __radd__(self, other: object) -> ScoreStatistics:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreStatistics):
            return NotImplemented
        mine, theirs = ((s.k, s.classes, s.totals, s.cells) for s in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        labels = "with" if self.labelled else "without"
        return f"<ScoreStatistics of {self.n:,} rows, {self.k} classes, {labels} labels>"

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

    def ece(self, *, n_bins: int = 15, binning: str = "size") -> float:
        """:func:`shiftcal.metrics.ece` of the rows counted; 15 bins if they have equal width."""
        return self.sketch("ece").ece(n_bins=n_bins, binning=binning)  # type: ignore[arg-type]

    def ece_range(self, *, n_bins: int = 15, binning: str = "size") -> tuple[float, float]:
        """Two numbers between which the exact ECE of the rows counted lies, guaranteed."""
        sketch = self.sketch("ece_range")
        return sketch.ece_range(n_bins=n_bins, binning=binning)  # type: ignore[arg-type]

    def sketch(self, name: str = "a metric") -> MetricSketch:
        """The cells of confidence, from which the other metrics of the top-1 class are read.

        ``mce``, ``debiased_ece``, ``smooth_ece``, ``ks_error``, ``aurc``, ``top1_brier`` and
        ``bin_table`` are methods of it; NLL and Brier score are told by the statistics themselves.

        Args:
            name: What is wanted, for the message if there are no labels.
        """
        self._with_labels(name)
        return MetricSketch.from_arrays(self.cells.to_arrays())

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
        """:func:`shiftcal.metrics.brier` of the raw softmax."""
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
        return fitting.from_totals(totals, ends)

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
        return fitting.refined(start, parts, t_range)

    def write(self, path: str | os.PathLike[str], *, part: Part | None = None) -> None:
        """Write everything to versioned JSON, whole or not at all.

        Args:
            path: The file.
            part: Which part of a job these are, for ``shiftcal merge``.
        """
        from shiftcal.scoring.statistics.file import write_statistics

        write_statistics(path, self, part)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ScoreStatistics:
        """The statistics that :meth:`write` wrote.

        Raises:
            FileError: If the file is missing, damaged, of another kind, or from a newer version.
        """
        from shiftcal.scoring.statistics.file import read_statistics

        return read_statistics(path)[0]

    def _with_labels(self, name: str) -> Totals:
        if not self.labelled:
            raise InputError(
                f"{name} needs labels, and these {self.n:,} rows were counted without. Only their "
                "number and their confidence are known."
            )
        return self.totals


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
    low, high = fitting.REACH
    if not low <= ends[0] <= ends[1] <= high:
        raise InputError(
            f"statistics know temperatures from {low:.2g} to {high:g}; asked for was "
            f"{ends[0]:g}{'' if ends[0] == ends[1] else f' to {ends[1]:g}'}."
        )
