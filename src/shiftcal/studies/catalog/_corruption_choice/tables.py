"""Tables of the choices of the calibration corruption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TypeAlias

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._corruption_choice.choices import spread
from shiftcal.studies.catalog._corruption_choice.views import (
    OTHER_FAMILIES,
    OTHER_FAMILIES_NOTE,
    OVER_CHOICES,
    TS,
    View,
)
from shiftcal.studies.catalog._spans import spans
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean
from shiftcal.studies.showing import OVER_SPLITS, percent

OWN_TARGETS = (
    "Every row has other targets: compare the columns of a row, not one error with another."
)
_CORNER = "Calibration corruption"
# A column, and a cell for each choice.
_Part: TypeAlias = tuple[Column, Sequence[Cell]]


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
        Column(f"severity {s}", unit="%", group=view.labels[key])
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
    return Table(title, columns, rows, note=f"{OVER_SPLITS} {OWN_TARGETS}", corner=_CORNER)


def choices_table(view: View) -> Table:
    """Every choice over the shifted targets, the greatest gain of the leading method on TS first.

    Nothing is marked best: a row has other targets than the next. Beside the errors stands what
    can be seen before: how far the surrogate sets reach, and on how many targets the method itself
    says that the target is outside of them.
    """
    parts = [
        *_differences(view),
        *_errors(view),
        *_other_families(view),
        *_seen_before(view),
    ]
    rows = tuple(
        Row(choice.name, tuple(cells[index] for _, cells in parts))
        for index, choice in enumerate(view.choices)
    )
    leading = view.labels[view.leading]
    families = f" {OTHER_FAMILIES_NOTE}" if view.with_ts else ""
    return Table(
        f"Mean ECE by calibration corruption, {view.over}",
        tuple(column for column, _ in parts),
        rows,
        note=(
            f"{OVER_SPLITS} {OWN_TARGETS}{families} Targets outside: those of which {leading} says "
            "that their mean confidence is beyond that of every surrogate set. Confidence (mean, "
            "raw) and accuracy of the surrogate sets: on the calibration images of the first "
            "split, before any target is seen."
        ),
        corner=_CORNER,
    )


def _differences(view: View) -> Iterator[_Part]:
    """How much more ECE than TS, on the same targets."""
    for key in view.varied if view.with_ts else ():
        name = f"{view.labels[key]} minus {view.labels[TS]}"
        yield Column(name, unit="points"), _of(view, view.minus_ts(key))


def _errors(view: View) -> Iterator[_Part]:
    """The means of all variants, those of the others on the targets of the choice."""
    fixed = [key for key in view.labels if key not in view.varied]
    for key in (*view.varied, *fixed):
        group = "same targets" if key in fixed else ""
        means = [_percent(choice.mean(key, view.shifted)) for choice in view.choices]
        yield Column(view.labels[key], unit="%", group=group), means


def _other_families(view: View) -> Iterator[_Part]:
    """The leading method without targets of the choice's own family."""
    if not view.with_ts:
        return
    label = view.labels[view.leading]
    kept = [choice.without_family(view.families) for choice in view.choices]
    means = [_percent(choice.mean(view.leading, view.shifted)) for choice in kept]
    yield Column(label, unit="%", group=OTHER_FAMILIES), means
    name = f"{label} minus {view.labels[TS]}"
    differences = view.minus_ts(view.leading, others=True)
    yield Column(name, unit="points", group=OTHER_FAMILIES), _of(view, differences)


def _seen_before(view: View) -> Iterator[_Part]:
    """What tells without labels of the target whether the sets fit."""
    own = [choice.of(view.leading, view.shifted) for choice in view.choices]
    shares = [Cell(100 * outside(records) if records else None) for records in own]
    yield Column("targets outside", unit="%", digits=1), shares
    reach = [view.reach.get(choice.name) for choice in view.choices]
    for name, pick in (
        ("highest confidence", attrgetter("highest")),
        ("lowest confidence", attrgetter("lowest")),
        ("lowest accuracy", attrgetter("accuracy")),
    ):
        cells = [Cell(None if each is None else 100 * pick(each)) for each in reach]
        yield Column(name, unit="%", group="surrogate sets", digits=1), cells


def _of(view: View, means: Mapping[str, Mean]) -> list[Cell]:
    return [_percent(means.get(choice.name)) for choice in view.choices]


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
