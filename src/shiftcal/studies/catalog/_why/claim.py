"""How often the closest mean gives the least error, over all targets and splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shiftcal.numerics.intervals import MeanInterval, mean_interval
from shiftcal.report.figures.lines import Lines, Panel, Series
from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._why.case import Case, by_split
from shiftcal.studies.showing import ECE, OVER_SPLITS, SEVERITY, severities_in_words

# File of all cases.
CASES = "surrogates.csv"
_NEAREST, _BEST, _CLEAN = "closest mean (SAC)", "best set, by the labels", "clean set (TS)"
_Pick = Callable[[Case], float]
_SHARES: tuple[tuple[Column, _Pick], ...] = (
    (Column("best set", unit="%", group="closest mean is", digits=1), lambda case: case.hit),
    (
        Column("best or next to it", unit="%", group="closest mean is", digits=1),
        lambda case: case.near_hit,
    ),
)
_ERRORS: tuple[tuple[Column, _Pick], ...] = (
    (Column(_NEAREST, unit="%", group="mean ECE of"), lambda case: case.ece_nearest),
    (Column(_BEST, unit="%", group="mean ECE of"), lambda case: case.ece_best),
    (Column(_CLEAN, unit="%", group="mean ECE of"), lambda case: case.ece_clean),
)


def claim_table(cases: Sequence[Case], titles: dict[str, str]) -> Table:
    """How often the closest mean is right and what it costs where it is not, by severity.

    Args:
        cases: At least one.
        titles: Of the natural targets, by name.
    """
    shifted = [s for s in _severities(cases) if s]
    rows = [_row(f"severity {s}", _at(cases, [s])) for s in _severities(cases)]
    if len(shifted) > 1:
        whole = severities_in_words(shifted)
        rows.append(_row(whole, _at(cases, shifted), rule_before=True))
    natural = dict.fromkeys(case.target.name for case in cases if case.target.natural)
    rows += [
        _row(titles.get(name, name), [case for case in cases if case.target.name == name])
        for name in natural
    ]
    columns = (Column("cases", digits=0), *(column for column, _ in (*_SHARES, *_ERRORS)))
    note = (
        "A case is one target in one split; the best set is that under whose temperature the "
        f"target's ECE is least. Every case is in data/{CASES}. {OVER_SPLITS}"
    )
    title = "Does the closest mean give the least ECE?"
    return Table(title, columns, tuple(rows), note=note, corner="Target")


def claim_lines(cases: Sequence[Case]) -> Lines | None:
    """Mean ECE under the temperature of three choices of the set; ``None`` without severities."""
    severities = _severities(cases)
    if not severities:
        return None
    series = []
    for key, label, pick in (
        ("ts", _CLEAN, lambda case: case.ece_clean),
        ("sac", _NEAREST, lambda case: case.ece_nearest),
        ("best-set", _BEST, lambda case: case.ece_best),
    ):
        means = [_mean(_at(cases, [s]), pick) for s in severities]
        y, low, high = (
            tuple(None if end is None else 100 * end for end in ends)
            for ends in zip(*means, strict=True)
        )
        ends = {} if None in low else {"low": low, "high": high}
        series.append(Series(key=key, label=label, y=y, **ends))
    panel = Panel(x=tuple(map(float, severities)), series=tuple(series), x_label=SEVERITY)
    title = "The temperature of which surrogate set?"
    return Lines(panels=(panel,), y_label=f"mean {ECE}", title=title, note=OVER_SPLITS)


def _row(label: str, cases: Sequence[Case], *, rule_before: bool = False) -> Row:
    cells = [Cell(len(cases))]
    cells += [Cell(100 * _mean(cases, pick).mean) for _, pick in _SHARES]
    for _, pick in _ERRORS:
        found = _mean(cases, pick)
        cells.append(Cell(*(None if end is None else 100 * end for end in found)))
    return Row(label, tuple(cells), rule_before=rule_before)


def _mean(cases: Sequence[Case], pick: _Pick) -> MeanInterval:
    """The mean within each split, then over the splits; no end of the interval is below 0."""
    found = mean_interval(float(np.mean([pick(each) for each in own])) for own in by_split(cases))
    return found if found.low is None else found._replace(low=max(0.0, found.low))


def _severities(cases: Sequence[Case]) -> list[int]:
    return sorted({s for case in cases if (s := case.target.severity) is not None})


def _at(cases: Sequence[Case], severities: Sequence[int]) -> list[Case]:
    return [case for case in cases if case.target.severity in severities]
