"""Natural shift: every method on images that were collected otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import ClassVar, final

from shiftcal.errors import InputError
from shiftcal.report.figures import Lines, Panel
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.studies.catalog.base import Findings, Study
from shiftcal.studies.plan import CLEAN, Plan
from shiftcal.studies.records import Record, Results, mean_over_splits, select
from shiftcal.studies.tables import (
    ECE,
    OVER_SPLITS,
    RANGES,
    labels_of,
    percent,
    series,
    target_cell,
)

CLEAN_TITLE = "clean test images"
_TITLE = "ECE under natural shift"
_TABLE_NOTE = (
    f"{OVER_SPLITS} All images of a natural set are judged in every split: intervals do not cover "
    "which images it has; the table of the sets says how much they matter. A natural set's ECE "
    f"without interval is one value: the same images and no calibration set. {RANGES}"
)
_FIGURE_NOTE = (
    f"{OVER_SPLITS} They do not cover which images a natural set has. The bar is the range over "
    "the splits where a method chose different surrogate sets or an interval would reach below 0."
)
_SETS_NOTE = (
    f"Accuracy and confidence are those of the model itself. {OVER_SPLITS} So many images make an "
    "ECE uncertain: by chance even perfect calibration shows up to about the first number, and one "
    "well above it has about the second as standard error."
)


@dataclass(frozen=True)
class ShownSet:
    """A target with its title and the records of all variants on it."""

    title: str
    records: list[Record]

    def of(self, variant: str) -> list[Record]:
        """The records of one variant."""
        return select(self.records, variant=variant)


@final
class Natural(Study):
    """Which method keeps confidences calibrated on images of the same classes from elsewhere?

    Every natural set of the plan, whole, next to the clean test images if the plan asks for
    severity 0.
    """

    name: ClassVar[str] = "natural"
    title: ClassVar[str] = "Natural shift"

    def check(self, plan: Plan) -> None:
        """Reject a plan without natural sets, or with two of the same title."""
        super().check(plan)
        if not plan.shifts.sets:
            raise InputError(
                "the study 'natural' needs at least one natural set: [[shifts.sets]] with "
                "name = ... and images = ...; the plan has none."
            )
        titles = Counter([CLEAN_TITLE, *(each.title for each in plan.shifts.sets)])
        for title, times in titles.items():
            if times > 1:
                raise InputError(f"each set needs its own title; {title!r} appears twice.")

    def findings(self, results: Results) -> Findings:
        """ECE by method and set, the sets in numbers, and a figure."""
        titles = {CLEAN: CLEAN_TITLE, **{s.name: s.title for s in results.plan.shifts.sets}}
        shown = [ShownSet(title, results.select(target=name)) for name, title in titles.items()]
        shown = [each for each in shown if each.records]
        if not shown:
            return Findings({}, {})
        labels = labels_of([record for each in shown for record in each.records])
        rows = {key: tuple(_ece(each.of(key)) for each in shown) for key in labels}
        table = Table(
            _TITLE,
            tuple(Column(each.title, unit="%", lower_is_better=True) for each in shown),
            tuple(Row(labels[key], rows[key], ranked=key != "oracle") for key in labels),
            note=_TABLE_NOTE,
            corner="Method",
        )
        panel = Panel(
            x=tuple(each.title for each in shown),
            series=tuple(series(key, labels[key], rows[key]) for key in labels),
            x_label="Target",
        )
        figure = Lines(panels=(panel,), y_label=ECE, title=_TITLE, note=_FIGURE_NOTE)
        tables = {"natural": table.marked(), "sets": _sets_table(shown, results.plan.bins)}
        return Findings(tables, {"natural": figure})


def _ece(records: Sequence[Record]) -> Cell:
    """ECE of a variant on a set; no interval for one value that every split repeats."""
    cell = target_cell(records)
    natural = any(record.severity is None for record in records)
    return Cell(cell.value) if natural and len({r.ece for r in records}) == 1 else cell


def by_chance(accuracy: float, n: int, bins: int) -> float:
    """About the most ECE that a perfectly calibrated predictor shows on so many images.

    Such a predictor shows ``sqrt(2 / pi) mean(sqrt(c (1 - c))) sqrt(bins / n)``, as
    :func:`shiftcal.metrics.ece` says. Its mean confidence is the accuracy a, and the mean root is
    at most ``sqrt(a (1 - a))``, by Jensen.

    Args:
        accuracy: A fraction.
        n: Images.
        bins: Of the ECE.
    """
    return sqrt(2 / pi) * sqrt(accuracy * (1 - accuracy) * min(bins, n) / n)


def _sets_table(shown: Sequence[ShownSet], bins: int) -> Table:
    """Every set in numbers: its size, what that does to an ECE, the model itself, the choices."""
    choosing = labels_of([r for each in shown for r in each.records if r.chosen])
    columns = [
        Column("images", digits=0),
        Column("accuracy", unit="%"),
        Column("confidence", unit="%"),
        Column("by chance", unit="%", group="ECE"),
        Column("standard error", unit="%", group="ECE"),
    ]
    for label in choosing.values():
        columns += [Column("chosen", group=label), Column("T", group=label)]
    rows = []
    for each in shown:
        first = each.of(each.records[0].variant)
        means = [
            mean_over_splits(first, lambda record, field=field: float(getattr(record, field)))  # type: ignore[misc]
            for field in ("accuracy", "raw_confidence")
        ]
        n, accuracy = first[0].n, means[0].value
        natural = first[0].severity is None  # the same in every split
        cells = [Cell(n), *(Cell(100 * m.value) if natural else percent(m) for m in means)]
        # Where confidence is too high in every bin, ECE is confidence minus accuracy.
        error = sqrt(accuracy * (1 - accuracy) / n)
        cells += [Cell(100 * by_chance(accuracy, n, bins)), Cell(100 * error)]
        for key in choosing:
            cells += _choice(each.of(key))
        rows.append(Row(each.title, tuple(cells), ranked=False))
    return Table("The sets", tuple(columns), tuple(rows), note=_SETS_NOTE, corner="Set")


def _choice(records: Sequence[Record]) -> list[Cell]:
    if not records:
        return [Cell(None), Cell(None)]
    (name, times), *others = Counter(record.chosen for record in records).most_common()
    chosen = Cell(f"{name} ({times} of {len(records)})" if others else name)
    known = [record for record in records if record.temperature is not None]
    if not known:
        return [chosen, Cell(None)]
    mean = mean_over_splits(known, lambda record: record.temperature or 0.0)
    return [chosen, Cell(mean.value, mean.low, mean.high)]
