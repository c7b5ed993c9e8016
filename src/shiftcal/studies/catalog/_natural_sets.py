"""The sets of the natural study as its tables and its figure show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import pi, sqrt

from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.paper import METHODS, READING_UNTOLD, TABLE_2, PublishedColumn, published
from shiftcal.studies.record import Record
from shiftcal.studies.results import Results, mean_over_splits, select
from shiftcal.studies.showing import ECE, OVER_SPLITS, RANGES, percent, target_cell
from shiftcal.studies.variant import CLEAN

CLEAN_TITLE = "clean test images"
_PAPER = "Paper: ResNet-50 of torchvision, 5,000 calibration images."
_SAME_IMAGES = (
    "All images of a natural set are judged in every split: intervals do not cover which images "
    "it has; the table of the sets says how much they matter. A natural set's ECE without interval "
    "is one value: the same images and no calibration set."
)
_NOTE = f"{OVER_SPLITS} {_SAME_IMAGES} {RANGES}"
_DRAWN = (
    f"{OVER_SPLITS} They do not cover which images a natural set has. The bar is the range over "
    "the splits where a method chose different surrogate sets or an interval would reach below 0."
)


@dataclass(frozen=True)
class ShownSet:
    """A target as it is shown.

    Attributes:
        title: In tables and figures.
        column: Of the paper's Table 2, if it is one.
        records: Of all variants on it.
    """

    title: str
    column: str | None
    records: tuple[Record, ...]

    @property
    def paper(self) -> PublishedColumn | None:
        """That column."""
        return None if self.column is None else TABLE_2.get(self.column)

    def of(self, variant: str) -> list[Record]:
        """The records of one variant."""
        return select(self.records, variant=variant)


def shown_sets(results: Results) -> list[ShownSet]:
    """The clean test images and every natural set that there are records of, in order."""
    told: list[tuple[str, str, str | None]] = [(CLEAN, CLEAN_TITLE, None)]
    told += [(each.name, each.title, each.column) for each in results.plan.shifts.sets]
    found = [
        ShownSet(title, column, tuple(results.select(target=name))) for name, title, column in told
    ]
    return [each for each in found if each.records]


def labels_of(shown: Sequence[ShownSet]) -> dict[str, str]:
    """Labels of the variants by key."""
    return {r.variant: r.label for each in shown for r in each.records}


def natural_table(shown: Sequence[ShownSet]) -> Table:
    """ECE of every method on every set, and the paper's beside it."""
    columns = []
    for each in shown:
        known = each.paper
        name, group = (known.name, known.group) if known else (each.title, "")
        columns.append(Column(name, unit="%", group=group, lower_is_better=True))
        if known:
            beside = Column(f"{name}, paper", unit="%", group=group, lower_is_better=True)
            columns.append(beside)
    methods = {r.variant: r.method for each in shown for r in each.records}
    rows = [
        Row(label, _row(shown, key, methods[key]), ranked=key != "oracle")
        for key, label in labels_of(shown).items()
    ]
    compared_with = any(each.paper for each in shown)
    if compared_with:
        rows += [
            Row(f"{label} (paper only)", _row(shown, method, method))
            for method, label in METHODS.items()
            if method not in methods.values()
        ]
    note = f"{_NOTE} {_PAPER}" if compared_with else _NOTE
    twice = [each for each in READING_UNTOLD if list(methods.values()).count(each) > 1]
    if compared_with and twice:
        names = " and ".join(METHODS[each] for each in twice)
        note += f" It does not say which reading of {names} it used: its number stands beside each."
    table = Table(
        "ECE under natural shift", tuple(columns), tuple(rows), note=note, corner="Method"
    )
    return table.marked()


def _row(shown: Sequence[ShownSet], variant: str, method: str) -> tuple[Cell, ...]:
    cells = []
    for each in shown:
        own = each.of(variant)
        cells.append(_ece(own))
        if each.paper:
            told = published(each.column, variant, method)
            cells.append(Cell(told, source="" if told is None else each.paper.source))
    return tuple(cells)


def _ece(records: Sequence[Record]) -> Cell:
    """ECE of a variant on a set; no interval where it is the same number in every split.

    Splits that repeat a number do not measure how sure it is.
    """
    cell = target_cell(records)
    natural = any(record.severity is None for record in records)
    return Cell(cell.value) if natural and len({r.ece for r in records}) == 1 else cell


def by_chance(accuracy: float, n: int, bins: int) -> float:
    """About the most ECE that a perfectly calibrated predictor shows on so many images.

    Such a predictor shows ``sqrt(2 / pi) mean(sqrt(c (1 - c))) sqrt(bins / n)``, as
    :func:`shiftcal.metrics.ece` says. Its mean confidence is the accuracy a, and the mean root is
    ``sqrt(a (1 - a))`` at the most, by Jensen.

    Args:
        accuracy: A fraction.
        n: Images.
        bins: Of the ECE.
    """
    return sqrt(2 / pi) * sqrt(accuracy * (1 - accuracy) * min(bins, n) / n)


def standard_error(accuracy: float, n: int) -> float:
    """About that of an ECE well above chance when other images of the same kind are drawn.

    Where confidence is too high in every bin, the ECE is mean confidence minus accuracy, and what
    varies most in it is the accuracy: ``sqrt(a (1 - a) / n)``.
    """
    return sqrt(accuracy * (1 - accuracy) / n)


def sets_table(shown: Sequence[ShownSet], *, bins: int) -> Table:
    """Every set in numbers: its size, what that does to an ECE, the model itself, the choices.

    Args:
        shown: The sets.
        bins: Of the ECE.
    """
    choosing = {r.variant: r.label for each in shown for r in each.records if r.chosen}
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
        n, accuracy = first[0].n, mean_over_splits(first, lambda record: record.accuracy).value
        cells = [Cell(n), _model(first, "accuracy"), _model(first, "raw_confidence")]
        cells += [
            Cell(100 * by_chance(accuracy, n, bins)),
            Cell(100 * standard_error(accuracy, n)),
        ]
        for key in choosing:
            cells += _choice(each.of(key))
        rows.append(Row(each.title, tuple(cells), ranked=False))
    note = (
        f"Accuracy and confidence are those of the model itself. {OVER_SPLITS} So many images "
        "make an ECE uncertain: by chance even perfect calibration shows up to about the first "
        "number, and one well above it has about the second as standard error."
    )
    return Table("The sets", tuple(columns), tuple(rows), note=note, corner="Set")


def _model(records: Sequence[Record], field: str) -> Cell:
    """What the model itself does; a natural set is the same in every split."""
    mean = mean_over_splits(records, lambda record: float(getattr(record, field)))
    return percent(mean) if records[0].severity is not None else Cell(100 * mean.value)


def _choice(records: Sequence[Record]) -> list[Cell]:
    if not records:
        return [Cell(None), Cell(None)]
    (name, times), *others = Counter(record.chosen for record in records).most_common()
    told = f"{name} ({times} of {len(records)})" if others else name
    known = [record for record in records if record.temperature is not None]
    if not known:
        return [Cell(told), Cell(None)]
    mean = mean_over_splits(known, lambda record: record.temperature or 0.0)
    return [Cell(told), Cell(mean.value, mean.low, mean.high)]


def natural_lines(shown: Sequence[ShownSet]) -> Lines:
    """ECE of every method on every set; the paper's numbers in a panel of their own.

    Beside the paper's panel ours has natural sets only, as the paper's.
    """
    labels = labels_of(shown)
    panels = [_panel(shown, labels)]
    known = [each for each in shown if each.paper]
    if known:
        natural = [each for each in shown if each.records[0].severity is None]
        panels = [_panel(natural, labels, title="measured"), _paper_panel(known, labels)]
    return Lines(
        panels=tuple(panels),
        y_label=ECE,
        title="ECE under natural shift",
        note=f"{_DRAWN} {_PAPER}" if known else _DRAWN,
    )


def _panel(shown: Sequence[ShownSet], labels: Mapping[str, str], *, title: str = "") -> Panel:
    series = []
    for key, label in labels.items():
        cells = [_ece(each.of(key)) for each in shown]
        y, low, high = (
            tuple(getattr(cell, part) for cell in cells) for part in ("value", "low", "high")
        )
        ends = {} if all(end is None for end in low) else {"low": low, "high": high}
        series.append(Series(key=key, label=label, y=y, **ends))
    names = tuple(each.title for each in shown)
    return Panel(x=names, series=tuple(series), x_label="Target", title=title)


def _paper_panel(known: Sequence[ShownSet], labels: Mapping[str, str]) -> Panel:
    columns = [each.paper for each in known if each.paper]
    series = tuple(
        Series(
            key=method,
            label=labels.get(method, label),
            y=tuple(column.ece[method] for column in columns),
        )
        for method, label in METHODS.items()
    )
    names = tuple(each.title for each in known)
    return Panel(x=names, series=series, x_label="Target", title="paper, ResNet-50")
