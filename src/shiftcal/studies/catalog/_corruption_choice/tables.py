"""Tables of the choices of the calibration corruption."""

from __future__ import annotations

from collections.abc import Sequence

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._corruption_choice.choices import Choice, spread
from shiftcal.studies.catalog._corruption_choice.views import OVER_CHOICES, View
from shiftcal.studies.catalog._pairs import ece_difference, paired
from shiftcal.studies.catalog._spans import spans
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean
from shiftcal.studies.showing import OVER_SPLITS, percent

_CORNER = "Calibration corruption"


def spread_table(view: View) -> Table:
    """Mean ECE over the choices, a row for each variant, a column for each severity."""
    over = spans(view.severities)
    columns = [Column(name, unit="%", lower_is_better=True) for name in over]
    rows = [
        Row(
            label,
            tuple(_over_choices(view, key, span) for span in over.values()),
            ranked=key != "oracle",
        )
        for key, label in view.labels.items()
    ]
    return Table(
        f"Mean ECE over {len(view.choices)} choices of the calibration corruption",
        tuple(columns),
        tuple(rows),
        note=f"Intervals: {OVER_CHOICES[0].lower()}{OVER_CHOICES[1:]}",
        corner="Method",
    ).marked()


def severities_table(view: View) -> Table:
    """Mean ECE of every choice at every severity, for the methods that use surrogate sets."""
    columns = tuple(
        Column(f"severity {s}", unit="%", group=view.labels[key], lower_is_better=True)
        for key in view.varied
        for s in view.severities
    )
    rows = tuple(
        Row(
            choice.name,
            tuple(_percent(choice.mean(key, [s])) for key in view.varied for s in view.severities),
        )
        for choice in view.choices
    )
    title = "Mean ECE by calibration corruption and severity"
    return Table(title, columns, rows, note=OVER_SPLITS, corner=_CORNER).marked()


def choices_table(view: View) -> Table:
    """Every choice over the shifted targets, the best of the leading method first.

    Beside the errors stands what can be seen before: how far the surrogate sets reach, and on how
    many targets the method itself says that the target is outside of them.
    """
    fixed = [key for key in view.labels if key not in view.varied]
    leading = view.labels[view.leading]
    columns = [Column(view.labels[key], unit="%", lower_is_better=True) for key in view.varied]
    columns += [Column(view.labels[key], unit="%", group="same targets") for key in fixed]
    if "ts" in fixed:
        columns.append(Column(f"{leading} minus {view.labels['ts']}", unit="points"))
    columns += [
        Column("targets outside", unit="%", digits=1),
        Column("highest confidence", unit="%", group="surrogate sets", digits=1),
        Column("lowest confidence", unit="%", group="surrogate sets", digits=1),
        Column("lowest accuracy", unit="%", group="surrogate sets", digits=1),
    ]
    rows = tuple(Row(choice.name, tuple(_cells(view, choice, fixed))) for choice in view.choices)
    return Table(
        f"Mean ECE by calibration corruption, {view.over}",
        tuple(columns),
        rows,
        note=(
            f"{OVER_SPLITS} Targets outside: those of which {leading} says that their mean "
            "confidence is beyond that of every surrogate set. Confidence (mean, raw) and accuracy "
            "of the surrogate sets: on the calibration images of the first split, before any "
            "target is seen."
        ),
        corner=_CORNER,
    ).marked()


def _cells(view: View, choice: Choice, fixed: Sequence[str]) -> list[Cell]:
    cells = [_percent(choice.mean(key, view.shifted)) for key in (*view.varied, *fixed)]
    own = choice.of(view.leading, view.shifted)
    if "ts" in fixed:
        cells.append(_percent(paired(own, choice.of("ts", view.shifted), ece_difference)))
    cells.append(Cell(100 * outside(own) if own else None))
    reach = view.reach.get(choice.name)
    if reach is None:
        return [*cells, Cell(None), Cell(None), Cell(None)]
    return [*cells, *(Cell(100 * x) for x in (reach.highest, reach.lowest, reach.accuracy))]


def outside(records: Sequence[Record]) -> float:
    """The share of records with the flag that the target is outside the surrogate sets' range."""
    return sum("outside-range" in record.flags.split() for record in records) / len(records)


def _over_choices(view: View, key: str, severities: Sequence[int]) -> Cell:
    found = spread(view.choices, key, severities)
    if found is None:
        return Cell(None)
    if found.sd is None:
        return Cell(100 * found.mean)
    return Cell(100 * found.mean, 100 * (found.mean - found.sd), 100 * (found.mean + found.sd))


def _percent(mean: Mean | None) -> Cell:
    return Cell(None) if mean is None else percent(mean)
