"""The answer to a question of the ablation, as a table and as a panel of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.report.tables.table import Table
from shiftcal.studies.catalog._ablation.questions import Question
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, mean_over_splits, select
from shiftcal.studies.showing import (
    ECE,
    OVER_SPLITS,
    SEVERITY,
    severities_in_words,
    severity_table,
)


def averaged(severities: Sequence[int]) -> list[int]:
    """The severities a mean is taken over: all from 1 on, or what else there is."""
    return [s for s in severities if s] or list(severities)


def span(severities: Sequence[int]) -> str:
    """Those severities in words."""
    return severities_in_words(averaged(severities))


def settings_of(question: Question, records: Sequence[Record]) -> list[str]:
    """What was varied: numbers rising, other settings in the order of the plan."""
    found = list(dict.fromkeys(record.setting for record in records))
    return sorted(found, key=int) if question.numeric else found


def labels_of(records: Sequence[Record]) -> dict[str, str]:
    """Labels of the variants by key, in the order of the plan."""
    return {record.variant: record.label for record in records}


def answer_table(question: Question, records: Sequence[Record], severities: Sequence[int]) -> Table:
    """Mean ECE per severity, a row for each method and setting."""
    keys: dict[str, str] = {}
    starts: list[str] = []
    for key, label in labels_of(records).items():
        own = select(records, variant=key)
        named = {
            _row_key(question, key, setting): (
                f"{label}, {question.in_words(setting)}" if question.words else label
            )
            for setting in settings_of(question, own)
        }
        starts.append(next(iter(named.values())))
        keys |= named
    renamed = [
        replace(each, variant=_row_key(question, each.variant, each.setting)) for each in records
    ]
    title = f"Mean ECE: {question.name}"
    corner = "Method and setting" if question.words else "Method"
    table = severity_table(renamed, keys, severities, title=title, corner=corner)
    first = starts[1:] if question.words else ()
    ruled = [replace(row, rule_before=row.label in first) for row in table.rows]
    return replace(table, rows=tuple(ruled))


def _row_key(question: Question, variant: str, setting: str) -> str:
    return f"{variant} {setting}" if question.words else variant


def answer_panel(question: Question, records: Sequence[Record], severities: Sequence[int]) -> Panel:
    """Mean ECE over the severities from 1 on against what is varied, a series for each method."""
    shifted = select(records, severity=averaged(severities))
    labels = labels_of(records)
    settings = settings_of(question, records)
    series = [
        _series(key, label, [select(shifted, variant=key, setting=each) for each in settings])
        for key, label in labels.items()
    ]
    x: tuple[float, ...] | tuple[str, ...] = tuple(each or span(severities) for each in settings)
    if question.numeric:
        x = tuple(float(each) for each in settings)
    return Panel(
        x=x,
        series=tuple(series),
        x_label=question.x_label,
        title=question.name,
        log_x=question.log_x,
    )


def ladder_lines(records: Sequence[Record], severities: Sequence[int]) -> Lines:
    """Mean ECE against severity: a panel for each method, a series for each ladder."""
    ladders = {record.setting: record.n_sets for record in records}
    panels = []
    for key, label in labels_of(records).items():
        own = select(records, variant=key)
        series = [
            _series(
                ladder,
                f"{ladder} ({n_sets} sets)",
                [select(own, setting=ladder, severity=s) for s in severities],
            )
            for ladder, n_sets in ladders.items()
        ]
        x = tuple(float(s) for s in severities)
        panels.append(Panel(x=x, series=tuple(series), x_label=SEVERITY, title=label))
    return Lines(
        panels=tuple(panels),
        y_label=f"mean {ECE}",
        title="Ladders of surrogate sets",
        note=OVER_SPLITS,
    )


def _series(key: str, label: str, groups: Sequence[Sequence[Record]]) -> Series:
    """One mean for each group of records, in percent, with intervals where there are any."""
    means = [mean_over_splits(group) if group else None for group in groups]
    low, high = (tuple(_percent(mean, end) for mean in means) for end in ("low", "high"))
    y = tuple(_percent(mean, "value") for mean in means)
    if all(end is None for end in low):
        return Series(key=key, label=label, y=y)
    return Series(key=key, label=label, y=y, low=low, high=high)


def _percent(mean: Mean | None, part: str) -> float | None:
    value = None if mean is None else getattr(mean, part)
    return None if value is None else 100 * value
