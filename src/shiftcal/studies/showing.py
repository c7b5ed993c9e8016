"""Records by variant and severity, as the table, the lines and the boxes that studies share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shiftcal.report.figures.boxes import Boxes, BoxSeries
from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, mean_over_splits, select

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


def of_one_split(note: str) -> str:
    """A note without what it says about intervals, of which one split has none."""
    return note.replace(OVER_SPLITS, ONE_SPLIT).replace(f" {RANGES}", "").replace(RANGES, "")


def percent(mean: Mean) -> Cell:
    """A mean over splits of a fraction, in percent; its interval ends at 100 %."""
    if mean.low is None or mean.high is None:
        return Cell(100 * mean.value)
    return Cell(100 * mean.value, 100 * mean.low, 100 * max(mean.value, min(mean.high, 1.0)))


def target_cell(records: Sequence[Record]) -> Cell:
    """ECE of one variant on one target, in percent.

    Student's interval is for splits that scatter around their mean. A method that chose one
    surrogate set in some splits and another in others has two clusters, and an interval that would
    reach below 0 is none for an error: both get the least and the most of the splits instead. The
    CSV says so under ``source``.
    """
    if not records:
        return Cell(None)
    mean = mean_over_splits(records)
    if mean.low is None or (mean.low > 0 and not flips(records)):
        return percent(mean)
    ends = (100 * min(mean.splits), 100 * max(mean.splits))
    return Cell(100 * mean.value, *ends, by_ends=True, source="least and most of the splits")


def flips(records: Sequence[Record]) -> bool:
    """Whether a variant chose different surrogate sets for one target in different splits."""
    return len({record.chosen for record in records}) > 1


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
    The lowest of a column is marked, but never the oracle: it has seen the labels. One alone is
    the lowest of nothing.

    Args:
        records: Of these variants.
        variants: Labels by key, in order.
        severities: Which ones, rising.
        title: Of the table.
        corner: What the rows are.
    """
    shifted = [s for s in severities if s]
    whole = f"mean of {in_words(shifted)}" if len(shifted) > 1 else ""
    columns = [Column(f"severity {s}", unit="%", lower_is_better=True) for s in severities]
    if whole:
        columns.append(Column(whole, unit="%", lower_is_better=True))
    rows = []
    for key, label in variants.items():
        own = select(records, variant=key)
        cells = [_cell(select(own, severity=s)) for s in severities]
        if whole:
            complete = {record.severity for record in own} >= set(shifted)
            cells.append(_cell(select(own, severity=shifted) if complete else []))
        rows.append(Row(label, tuple(cells), ranked=key != "oracle"))
    table = Table(title, tuple(columns), tuple(rows), note=OVER_SPLITS, corner=corner)
    return table.marked() if sum(row.ranked for row in rows) > 1 else table


def severity_lines(
    records: Sequence[Record],
    variants: Mapping[str, str],
    severities: Sequence[int],
    *,
    title: str,
    note: str = OVER_SPLITS,
) -> Lines:
    """Mean ECE over corruptions against severity, a line for each variant."""
    series = []
    for key, label in variants.items():
        own = select(records, variant=key)
        means = [_mean(select(own, severity=s)) for s in severities]
        low = tuple(None if m is None or m.low is None else 100 * m.low for m in means)
        high = tuple(None if m is None or m.high is None else 100 * m.high for m in means)
        ends = {} if all(end is None for end in low) else {"low": low, "high": high}
        y = tuple(None if m is None else 100 * m.value for m in means)
        series.append(Series(key=key, label=label, y=y, **ends))
    panel = Panel(x=tuple(float(s) for s in severities), series=tuple(series), x_label=SEVERITY)
    return Lines(panels=(panel,), y_label=f"mean {ECE}", title=title, note=note)


def severity_boxes(
    records: Sequence[Record],
    variants: Mapping[str, str],
    severities: Sequence[int],
    *,
    title: str,
    note: str = "",
) -> Boxes:
    """ECE of every corruption against severity, a box for each variant.

    One value is that of one corruption: the mean over splits, and over draws if there are several.
    """
    series = [
        BoxSeries(
            key=key,
            label=label,
            values=tuple(
                by_corruption(select(records, variant=key, severity=s)) for s in severities
            ),
        )
        for key, label in variants.items()
    ]
    groups = tuple(str(s) for s in severities)
    return Boxes(
        groups=groups, series=tuple(series), x_label=SEVERITY, y_label=ECE, title=title, note=note
    )


def by_corruption(records: Sequence[Record]) -> tuple[float, ...]:
    """ECE in percent of every corruption, its mean over splits and draws."""
    found: dict[str, list[float]] = {}
    for record in records:
        found.setdefault(record.corruption, []).append(100 * record.ece)
    return tuple(float(np.mean(values)) for values in found.values())


def _mean(records: Sequence[Record]) -> Mean | None:
    return mean_over_splits(records) if records else None


def _cell(records: Sequence[Record]) -> Cell:
    found = _mean(records)
    return Cell(None) if found is None else percent(found)
