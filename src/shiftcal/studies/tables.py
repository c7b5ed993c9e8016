"""Tables, lines and boxes that studies share, made of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp, log

import numpy as np

from shiftcal.report.figures import Boxes, BoxSeries, Lines, Panel, Series
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.studies.records import (
    CLEARLY,
    Mean,
    Record,
    clearly_above,
    mean_over_splits,
    paired,
    select,
)

SEVERITY = "Severity of the shift"
ECE = "ECE (%)"
OVER_SPLITS = (
    "Intervals: 95 %, over the splits into calibration and test images; splits share images, so "
    "that they are somewhat narrow."
)
ONE_SPLIT = "One split into calibration and test images, and so no intervals."
RANGES = (
    "An ECE with [least, most] has the range over the splits instead, where the method chose "
    "different surrogate sets in different splits or an interval would reach below 0."
)
BOXES = (
    "A value is the ECE under one corruption, its mean over the splits; severity 0 has one, the "
    "clean test images."
)


def of_one_split(note: str) -> str:
    """A note without what it says about intervals, which one split does not have."""
    return note.replace(OVER_SPLITS, ONE_SPLIT).replace(f" {RANGES}", "").replace(RANGES, "")


def percent(mean: Mean | None) -> Cell:
    """A mean over splits of a fraction, in percent; its interval ends at 100 %."""
    if mean is None:
        return Cell(None)
    if mean.low is None or mean.high is None:
        return Cell(100 * mean.value)
    return Cell(100 * mean.value, 100 * mean.low, 100 * max(mean.value, min(mean.high, 1.0)))


def mean_cell(
    records: Sequence[Record], pick: Callable[[Record], float] = lambda record: record.ece
) -> Cell:
    """The mean of some records of one variant, in percent; by default of the ECE."""
    return percent(mean_over_splits(records, pick) if records else None)


def temperature_cell(records: Sequence[Record]) -> Cell:
    """The geometric mean of temperatures: a temperature is a ratio, and one may be extreme."""
    known = [record for record in records if record.temperature]
    if not known:
        return Cell(None)
    mean = mean_over_splits(known, lambda record: log(record.temperature or 1.0), least=None)
    ends = (None if end is None else exp(end) for end in (mean.low, mean.high))
    return Cell(exp(mean.value), *ends)


def target_cell(records: Sequence[Record]) -> Cell:
    """ECE of one variant on one target, in percent.

    Student's interval is for splits that scatter around their mean. A method that chose one
    surrogate set in some splits and another in others has two clusters, and no error lies below 0:
    both get the least and the most of the splits instead. The CSV says so under ``source``.
    """
    if not records:
        return Cell(None)
    mean = mean_over_splits(records)
    one_choice = len({record.chosen for record in records}) == 1
    if mean.low is None or (mean.low > 0 and one_choice):
        return percent(mean)
    ends = (100 * min(mean.splits), 100 * max(mean.splits))
    return Cell(100 * mean.value, *ends, by_ends=True, source="least and most of the splits")


def series(key: str, label: str, cells: Sequence[Cell]) -> Series:
    """A line through the numbers of cells, with intervals if any cell has one."""
    y, low, high = (
        tuple(getattr(cell, part) for cell in cells) for part in ("number", "low", "high")
    )
    if all(end is None for end in low):
        return Series(key=key, label=label, y=y)
    return Series(key=key, label=label, y=y, low=low, high=high)


def labels_of(records: Sequence[Record]) -> dict[str, str]:
    """Labels of the variants by key, in the order of the plan."""
    return {record.variant: record.label for record in records}


def marked(table: Table) -> Table:
    """The table with the best of each column marked, if at least two rows are ranked."""
    return table.marked() if sum(row.ranked for row in table.rows) > 1 else table


# --------------------------------------------------------------------------------------
# By severity
# --------------------------------------------------------------------------------------


def severities_in_words(severities: Sequence[int]) -> str:
    """For a sentence: ``severity 3``, ``severities 1 to 5``."""
    return f"{'severity' if len(severities) == 1 else 'severities'} {in_words(severities)}"


def in_words(severities: Sequence[int]) -> str:
    """Severities for a header: ``3``, ``1 to 5``, ``3 and 5``, ``1, 3 and 4``."""
    first, *others = severities
    if not others:
        return str(first)
    if list(severities) == list(range(first, others[-1] + 1)):
        return f"{first} to {others[-1]}"
    return f"{', '.join(map(str, severities[:-1]))} and {others[-1]}"


def spans(severities: Sequence[int]) -> dict[str, list[int]]:
    """Severities by column header: each by itself, then those from 1 on if there are several."""
    found = {f"severity {s}": [s] for s in severities}
    shifted = [s for s in severities if s]
    if len(shifted) > 1:
        found[f"mean of {in_words(shifted)}"] = shifted
    return found


def severity_table(
    records: Sequence[Record],
    variants: Mapping[str, str],
    severities: Sequence[int],
    *,
    title: str,
    corner: str = "Method",
) -> Table:
    """Mean ECE over corruptions, a row for each variant, a column for each severity.

    The last column is the mean over the severities from 1 on, of variants that have all of them.
    The lowest of a column is marked, but never the oracle: it has seen the labels.

    Args:
        records: Of these variants.
        variants: Labels by key, in order.
        severities: Which ones, rising.
        title: Of the table.
        corner: What the rows are.
    """
    columns = spans(severities)
    rows = []
    for key, label in variants.items():
        own = select(records, variant=key)
        known = {record.severity for record in own}
        cells = (
            mean_cell(select(own, severity=span) if known >= set(span) else [])
            for span in columns.values()
        )
        rows.append(Row(label, tuple(cells), ranked=key != "oracle"))
    return marked(
        Table(
            title,
            tuple(Column(name, unit="%", lower_is_better=True) for name in columns),
            tuple(rows),
            note=OVER_SPLITS,
            corner=corner,
        )
    )


def severity_lines(
    records: Sequence[Record],
    variants: Mapping[str, str],
    severities: Sequence[int],
    *,
    title: str,
) -> Lines:
    """Mean ECE over corruptions against severity, a line for each variant."""
    drawn = [
        series(
            key, label, [mean_cell(select(records, variant=key, severity=s)) for s in severities]
        )
        for key, label in variants.items()
    ]
    panel = Panel(x=tuple(map(float, severities)), series=tuple(drawn), x_label=SEVERITY)
    return Lines(panels=(panel,), y_label=f"mean {ECE}", title=title, note=OVER_SPLITS)


def severity_boxes(
    records: Sequence[Record],
    variants: Mapping[str, str],
    severities: Sequence[int],
    *,
    title: str,
    note: str = BOXES,
) -> Boxes:
    """ECE of every corruption against severity, a box for each variant.

    One value is that of one corruption: the mean over splits, and over draws if there are several.
    """

    def by_corruption(own: Sequence[Record]) -> tuple[float, ...]:
        values: dict[str, list[float]] = {}
        for record in own:
            values.setdefault(record.corruption, []).append(100 * record.ece)
        return tuple(float(np.mean(each)) for each in values.values())

    boxes = [
        BoxSeries(
            key=key,
            label=label,
            values=tuple(
                by_corruption(select(records, variant=key, severity=s)) for s in severities
            ),
        )
        for key, label in variants.items()
    ]
    return Boxes(
        groups=tuple(map(str, severities)),
        series=tuple(boxes),
        x_label=SEVERITY,
        y_label=ECE,
        title=title,
        note=note,
    )


# --------------------------------------------------------------------------------------
# Behind the means: every target, the temperatures, the choices
# --------------------------------------------------------------------------------------

_MARKED = (
    "Marked is the lowest ECE of a row and every other that is not clearly larger than any, the "
    f"oracle's aside. {CLEARLY}"
)


def full_table(records: Sequence[Record], variants: Mapping[str, str]) -> Table:
    """ECE of every target and method, next to the model's own accuracy and confidence there.

    A row is a corruption at a severity. In each, the lowest ECE is marked and every other that is
    not clearly above any, the oracle aside; one method alone is the lowest of nothing.
    """
    ranked = [key for key in variants if key != "oracle"]
    columns = [
        Column("accuracy", unit="%", group="Model"),
        Column("confidence", unit="%", group="Model"),
        *(Column(label, unit="%", group="ECE") for label in variants.values()),
    ]
    order = {name: i for i, name in enumerate(dict.fromkeys(r.corruption for r in records))}
    places = {r.target: (order[r.corruption], r.severity or 0) for r in records}
    rows: list[Row] = []
    corruption = None
    for target in sorted(places, key=places.__getitem__):
        here = select(records, target=target)
        first = select(here, variant=here[0].variant)
        cells = (
            mean_cell(first, lambda record: record.accuracy),
            mean_cell(first, lambda record: record.raw_confidence),
            *_marked_cells({key: select(here, variant=key) for key in variants}, ranked),
        )
        begins = bool(rows) and here[0].corruption != corruption
        rows.append(Row(target, cells, rule_before=begins))
        corruption = here[0].corruption
    return Table(
        "ECE of every target",
        tuple(columns),
        tuple(rows),
        note=f"{OVER_SPLITS} {RANGES}{f' {_MARKED}' if len(ranked) > 1 else ''}",
        corner="Target",
    )


def _marked_cells(own: Mapping[str, Sequence[Record]], ranked: Sequence[str]) -> list[Cell]:
    """The cells of a row by variant, marked where no other is clearly below."""
    cells = {key: target_cell(records) for key, records in own.items()}
    numbers = {key: cells[key].number for key in ranked if cells[key].number is not None}
    lowest = f"{min(numbers.values()):.2f}" if numbers else ""  # type: ignore[type-var]

    def is_marked(key: str) -> bool:
        if key not in numbers or len(ranked) < 2:
            return False
        if f"{numbers[key]:.2f}" == lowest:
            return True
        found = [paired(own[key], own[other]) for other in numbers if other != key]
        known = [each for each in found if each is not None and each.low is not None]
        return len(known) == len(found) and not any(map(clearly_above, known))

    return [replace(cell, mark=is_marked(key)) for key, cell in cells.items()]


def temperature_table(
    records: Sequence[Record], variants: Mapping[str, str], severities: Sequence[int]
) -> Table:
    """The temperature every method divided by, severity by severity; Vanilla's is 1."""
    rows = []
    for key, label in variants.items():
        own = [r for r in select(records, variant=key) if r.temperature and r.method != "vanilla"]
        if own:
            cells = tuple(temperature_cell(select(own, severity=s)) for s in severities)
            rows.append(Row(label, cells, ranked=False))
    return Table(
        "Temperature",
        tuple(Column(f"severity {s}") for s in severities),
        tuple(rows),
        note=f"Geometric means over corruptions and splits. {OVER_SPLITS}",
        corner="Method",
    )


def chosen_table(records: Sequence[Record], ladder: Sequence[str]) -> Table:
    """How often each surrogate set was chosen, in percent of the targets of a severity.

    Args:
        records: Of which those that chose are counted.
        ladder: Names of the surrogate sets, in order.
    """
    choices = [record for record in records if record.chosen and record.severity is not None]
    sets = list(dict.fromkeys([*ladder, *(record.chosen for record in choices)]))
    labels = labels_of(choices)
    rows: list[Row] = []
    for key, label in labels.items():
        own = select(choices, variant=key)
        for index, severity in enumerate(sorted({r.severity or 0 for r in own})):
            here = select(own, severity=severity)
            counts = Counter(record.chosen for record in here)
            name = f"{label}, severity {severity}" if len(labels) > 1 else f"severity {severity}"
            cells = (Cell(len(here)), *(Cell(100 * counts[each] / len(here)) for each in sets))
            rows.append(Row(name, cells, rule_before=bool(rows) and index == 0))
    return Table(
        "Surrogate sets that were chosen",
        (Column("choices", digits=0), *(Column(name, unit="%", digits=1) for name in sets)),
        tuple(rows),
        note="Shares of all choices at a severity: one for each corruption and split.",
        corner="Target",
    )
