"""Tables, lines and boxes of records: rows and columns by key, a cell for each pair of keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from math import exp, log
from typing import Any, TypeAlias, TypeVar

import numpy as np

from shiftcal.report.figures import Boxes, BoxSeries, Lines, Panel, Series
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.studies.records import (
    CLEARLY,
    Mean,
    Record,
    clearly_above,
    difference,
    labels_of,
    mean_of,
    mean_over_splits,
    select,
)

Span: TypeAlias = tuple[int, ...]
R = TypeVar("R", bound=Hashable)
C = TypeVar("C", bound=Hashable)

SEVERITY = "Severity of the shift"
ECE = "ECE (%)"
OVER_SPLITS = (
    "Intervals: 95 %, over the splits into calibration and test images; splits share images, so "
    "that they are somewhat narrow."
)
RANGES = (
    "An ECE with [least, most] has the range over the splits instead, where the method chose "
    "different surrogate sets in different splits or an interval would reach below 0."
)
BOXES = (
    "A value is the ECE under one corruption, its mean over the splits; severity 0 has one, the "
    "clean test images."
)


# --------------------------------------------------------------------------------------
# Any table and any figure
# --------------------------------------------------------------------------------------


def table(
    title: str,
    rows: Mapping[R, str],
    columns: Mapping[C, Column],
    cell: Callable[[R, C], Cell],
    *,
    corner: str = "Method",
    note: str = OVER_SPLITS,
) -> Table:
    """A cell for every row and column.

    The best of a column is marked where a column says what is better and two rows are ranked; the
    oracle never is: it has seen the labels.

    Args:
        title: Above it.
        rows: Labels by key.
        columns: By key.
        cell: From the keys of row and column.
        corner: What the rows are.
        note: Below it.
    """
    made = tuple(
        Row(label, tuple(cell(key, column) for column in columns), ranked=key != "oracle")
        for key, label in rows.items()
    )
    found = Table(title, tuple(columns.values()), made, note=note, corner=corner)
    return found.marked() if sum(row.ranked for row in made) > 1 else found


def panel(
    rows: Mapping[R, str], x: Mapping[C, Any], cell: Callable[[R, C], Cell], **words: Any
) -> Panel:
    """The rows of a table as lines over places on the x-axis; ``words`` as for ``Panel``.

    A line has intervals if any of its cells has one.
    """
    drawn = []
    for key, label in rows.items():
        cells = [cell(key, column) for column in x]
        ends = {name: tuple(getattr(each, name) for each in cells) for name in ("low", "high")}
        ends = ends if any(low is not None for low in ends["low"]) else {}
        y = tuple(each.number for each in cells)
        drawn.append(Series(key=str(key), label=label, y=y, **ends))
    return Panel(x=tuple(x.values()), series=tuple(drawn), **words)


def lines(title: str, *panels: Panel, **words: Any) -> Lines:
    """A figure of panels; ``words`` as for ``Lines``."""
    words = {"y_label": f"mean {ECE}", "note": OVER_SPLITS, **words}
    return Lines(panels=panels, title=title, **words)


def percents(names: Mapping[C, str], **words: Any) -> dict[C, Column]:
    """Columns of percentages; ``words`` as for ``Column``."""
    return {key: Column(name, **{"unit": "%", **words}) for key, name in names.items()}


# --------------------------------------------------------------------------------------
# Cells
# --------------------------------------------------------------------------------------


def percent(mean: Mean | None) -> Cell:
    """A mean over splits of a fraction, in percent."""
    return Cell(*(None if end is None else 100 * end for end in mean[:3]) if mean else (None,))


def mean_cell(records: Sequence[Record], field: str = "ece") -> Cell:
    """The mean of some records of one variant, in percent."""
    return percent(mean_of(records, field))


def ece(records: Sequence[Record], **wanted: object) -> Cell:
    """The mean ECE of those records that :func:`select` gives, in percent."""
    return mean_cell(select(records, **wanted))


def temperature_cell(records: Sequence[Record]) -> Cell:
    """The geometric mean of temperatures: a temperature is a ratio, and one may be extreme."""
    mean = mean_over_splits((r.split, log(r.temperature)) for r in records if r.temperature)
    return Cell(*(None if end is None else exp(end) for end in mean[:3]) if mean else (None,))


def target_cell(records: Sequence[Record]) -> Cell:
    """ECE of one variant on one target, in percent.

    Student's interval is for splits that scatter around their mean. A method that chose one
    surrogate set in some splits and another in others has two clusters, and no error lies below 0:
    both get the least and the most of the splits instead. The CSV says so under ``source``.
    """
    mean = mean_of(records)
    one_choice = len({record.chosen for record in records}) == 1
    if mean is None or mean.low is None or (mean.low > 0 and one_choice):
        return percent(mean)
    ends = (100 * min(mean.splits), 100 * max(mean.splits))
    return Cell(100 * mean.value, *ends, by_ends=True, source="least and most of the splits")


# --------------------------------------------------------------------------------------
# By severity
# --------------------------------------------------------------------------------------


def in_words(severities: Sequence[int]) -> str:
    """Severities for a header: ``3``, ``1 to 5``, ``3 and 5``, ``1, 3 and 4``."""
    first, *others = severities
    if not others:
        return str(first)
    if list(severities) == list(range(first, others[-1] + 1)):
        return f"{first} to {others[-1]}"
    return f"{', '.join(map(str, severities[:-1]))} and {others[-1]}"


def severities_in_words(severities: Sequence[int]) -> str:
    """For a sentence: ``severity 3``, ``severities 1 to 5``."""
    return f"{'severity' if len(severities) == 1 else 'severities'} {in_words(severities)}"


def shifted(severities: Sequence[int]) -> Span:
    """Those from 1 on."""
    return tuple(s for s in severities if s)


def spans(severities: Sequence[int]) -> dict[Span, str]:
    """Headers of columns: each severity by itself, then those from 1 on if there are several."""
    found: dict[Span, str] = {(s,): f"severity {s}" for s in severities}
    strong = shifted(severities)
    return {**found, strong: f"mean of {in_words(strong)}"} if len(strong) > 1 else found


def axis(severities: Sequence[int]) -> dict[Span, float]:
    """Places on an axis of severities."""
    return {(s,): float(s) for s in severities}


def ece_at(records: Sequence[Record]) -> Callable[[str, Span], Cell]:
    """Mean ECE of a variant at some severities, if it has all of them."""

    def cell(key: str, span: Span) -> Cell:
        own = select(records, variant=key, severity=span)
        return mean_cell(own if {record.severity for record in own} >= set(span) else [])

    return cell


def severity_table(
    records: Sequence[Record], severities: Sequence[int], *, title: str, **words: Any
) -> Table:
    """Mean ECE over corruptions, a row for each variant, a column for each severity.

    The last column is the mean over the severities from 1 on, of variants that have all of them.
    """
    columns = percents(spans(severities), lower_is_better=True)
    return table(title, labels_of(records), columns, ece_at(records), **words)


def severity_lines(records: Sequence[Record], severities: Sequence[int], *, title: str) -> Lines:
    """Mean ECE over corruptions against severity, a line for each variant."""
    rows, cell = labels_of(records), ece_at(records)
    return lines(title, panel(rows, axis(severities), cell, x_label=SEVERITY))


def severity_boxes(
    records: Sequence[Record], severities: Sequence[int], *, title: str, note: str = BOXES
) -> Boxes:
    """ECE of every corruption against severity, a box for each variant.

    One value is that of one corruption: the mean over splits, and over draws if there are several.
    """

    def by_corruption(key: str, severity: int) -> tuple[float, ...]:
        values: dict[str, list[float]] = {}
        for record in select(records, variant=key, severity=severity):
            values.setdefault(record.corruption, []).append(100 * record.ece)
        return tuple(float(np.mean(each)) for each in values.values())

    boxes = [
        BoxSeries(key=key, label=label, values=tuple(by_corruption(key, s) for s in severities))
        for key, label in labels_of(records).items()
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
    " Marked is the lowest ECE of a row and every other that is not clearly larger than any, the "
    f"oracle's aside. {CLEARLY}"
)


def full_table(records: Sequence[Record]) -> Table:
    """ECE of every target and method, next to the model's own accuracy and confidence there.

    A row is a corruption at a severity. In each, the lowest ECE is marked and every other that is
    not clearly above any, the oracle aside; one method alone is the lowest of nothing.
    """
    variants = labels_of(records)
    several = len(variants.keys() - {"oracle"}) > 1
    order = {name: i for i, name in enumerate(dict.fromkeys(r.corruption for r in records))}
    places = {r.target: (order[r.corruption], r.severity or 0) for r in records}
    cells: dict[tuple[str, str], Cell] = {}
    for target in places:
        here = select(records, target=target)
        first = select(here, variant=here[0].variant)
        for field in ("accuracy", "raw_confidence"):
            cells[target, field] = mean_cell(first, field)
        own = {key: select(here, variant=key) for key in variants}
        best = _lowest(own) if several else set()
        for key in variants:
            cells[target, key] = replace(target_cell(own[key]), mark=key in best)
    model = {"accuracy": "accuracy", "raw_confidence": "confidence"}
    return table(
        "ECE of every target",
        {target: target for target in sorted(places, key=places.__getitem__)},
        percents(model, group="Model") | percents(variants, group="ECE"),
        lambda target, key: cells[target, key],
        note=f"{OVER_SPLITS} {RANGES}{_MARKED if several else ''}",
        corner="Target",
    )


def _lowest(own: Mapping[str, Sequence[Record]]) -> set[str]:
    """The variants than which no other is clearly lower on one target."""
    means = {key: mean for key, each in own.items() if key != "oracle" and (mean := mean_of(each))}
    lowest = f"{100 * min((mean.value for mean in means.values()), default=0.0):.2f}"

    def is_lowest(key: str) -> bool:
        if f"{100 * means[key].value:.2f}" == lowest:
            return True
        found = [difference(own[key], own[other]) for other in means if other != key]
        return not any(each is None or each.low is None or clearly_above(each) for each in found)

    return {key for key in means if is_lowest(key)}


def temperature_table(records: Sequence[Record], severities: Sequence[int]) -> Table:
    """The temperature every method divided by, severity by severity; Vanilla's is 1."""
    own = [record for record in records if record.temperature and record.method != "vanilla"]
    return table(
        "Temperature",
        labels_of(own),
        {s: Column(f"severity {s}") for s in severities},
        lambda key, s: temperature_cell(select(own, variant=key, severity=s)),
        note=f"Geometric means over corruptions and splits. {OVER_SPLITS}",
    )


def chosen_table(records: Sequence[Record], ladder: Sequence[str]) -> Table:
    """How often each surrogate set was chosen, in percent of the targets of a severity.

    Args:
        records: Of which those that chose are counted.
        ladder: Names of the surrogate sets, in order.
    """
    labels = labels_of(record for record in records if record.chosen)
    choices = {
        (key, severity): Counter(r.chosen for r in select(records, variant=key, severity=severity))
        for key in labels
        for severity in sorted({r.severity for r in select(records, variant=key)})  # type: ignore[type-var]
    }
    sets = dict.fromkeys([*ladder, *(name for each in choices.values() for name in each)])
    words = {key: f"{label}, " if len(labels) > 1 else "" for key, label in labels.items()}
    return table(
        "Surrogate sets that were chosen",
        {(key, severity): f"{words[key]}severity {severity}" for key, severity in choices},
        {"": Column("choices", digits=0), **percents({name: name for name in sets}, digits=1)},
        lambda place, name: Cell(
            100 * choices[place][name] / choices[place].total() if name else choices[place].total()
        ),
        note="Shares of all choices at a severity: one for each corruption and split.",
        corner="Target",
    )
