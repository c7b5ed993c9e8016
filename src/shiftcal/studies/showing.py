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
OVER_SPLITS = "Intervals: 95 %, over the splits into calibration and test images."


def percent(mean: Mean) -> Cell:
    """A mean over splits in percent, with its interval."""
    ends = (mean.low, mean.high)
    return Cell(100 * mean.value, *(None if end is None else 100 * end for end in ends))


def severity_table(
    records: Sequence[Record],
    variants: Mapping[str, str],
    severities: Sequence[int],
    *,
    title: str,
    corner: str = "Method",
) -> Table:
    """Mean ECE over corruptions, a row for each variant, a column for each severity.

    The last column is the mean over the severities from 1 on. The oracle is never marked best: it
    has seen the labels.

    Args:
        records: Of these variants.
        variants: Labels by key, in order.
        severities: Which ones, rising.
        title: Of the table.
        corner: What the rows are.
    """
    shifted = [s for s in severities if s]
    whole = f"mean of {shifted[0]} to {shifted[-1]}" if len(shifted) > 1 else ""
    columns = [Column(f"severity {s}", unit="%", lower_is_better=True) for s in severities]
    if whole:
        columns.append(Column(whole, unit="%", lower_is_better=True))
    rows = []
    for key, label in variants.items():
        own = select(records, variant=key)
        cells = [_cell(select(own, severity=s)) for s in severities]
        if whole:
            cells.append(_cell(select(own, severity=shifted)))
        rows.append(Row(label, tuple(cells), ranked=key != "oracle"))
    return Table(title, tuple(columns), tuple(rows), note=OVER_SPLITS, corner=corner).marked()


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
        ends = {} if None in low else {"low": low, "high": high}
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
