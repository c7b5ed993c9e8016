"""Tables of what lies behind the means: every target, the temperatures, the choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.comparing import CLEARLY, clearly_above, difference
from shiftcal.studies.record import Record
from shiftcal.studies.results import mean_over_splits, select
from shiftcal.studies.showing import OVER_SPLITS, RANGES, percent, target_cell

_MARKED = (
    "Marked is the lowest ECE of a row and every other that is not clearly larger than any, the "
    f"oracle's aside. {CLEARLY}"
)


def full_table(records: Sequence[Record], variants: Mapping[str, str]) -> Table:
    """ECE of every target and method, beside the model's own accuracy and confidence there.

    A row is a corruption at a severity. In each, the lowest ECE is marked and every other that is
    not clearly above any, the oracle aside; one method alone is the lowest of nothing.
    """
    several = len([key for key in variants if key != "oracle"]) > 1
    columns = [
        Column("accuracy", unit="%", group="Model"),
        Column("confidence", unit="%", group="Model"),
        *(Column(label, unit="%", group="ECE") for label in variants.values()),
    ]
    rows: list[Row] = []
    corruption = None
    for target in _by_corruption(records):
        here = select(records, target=target)
        first = select(here, variant=here[0].variant)
        own = {key: select(here, variant=key) for key in variants}
        rows.append(
            Row(
                target,
                (
                    percent(mean_over_splits(first, lambda record: record.accuracy)),
                    percent(mean_over_splits(first, lambda record: record.raw_confidence)),
                    *_marked(own),
                ),
                rule_before=bool(rows) and here[0].corruption != corruption,
            )
        )
        corruption = here[0].corruption
    return Table(
        "ECE of every target",
        tuple(columns),
        tuple(rows),
        note=f"{OVER_SPLITS} {RANGES}{f' {_MARKED}' if several else ''}",
        corner="Target",
    )


def _by_corruption(records: Sequence[Record]) -> list[str]:
    """The targets, those of one corruption together, by severity."""
    order = {name: i for i, name in enumerate(dict.fromkeys(r.corruption for r in records))}
    places = {r.target: (order[r.corruption], r.severity or 0) for r in records}
    return sorted(places, key=places.__getitem__)


def _marked(own: Mapping[str, Sequence[Record]]) -> list[Cell]:
    """The cells of a row by variant, marked where no other is clearly below.

    So the lowest is marked in any case, and what prints the same. One split tells no more.
    """
    cells = {key: target_cell(records) for key, records in own.items()}
    ranked = {
        key: cell.number
        for key, cell in cells.items()
        if cell.number is not None and key != "oracle"
    }
    lowest = f"{min(ranked.values()):.2f}" if ranked else ""
    return [
        replace(
            cell,
            mark=key in ranked
            and len(own.keys() - {"oracle"}) > 1
            and (f"{cell.number:.2f}" == lowest or _undercut_by_none(key, own, list(ranked))),
        )
        for key, cell in cells.items()
    ]


def _undercut_by_none(key: str, own: Mapping[str, Sequence[Record]], ranked: Sequence[str]) -> bool:
    found = [difference(own[key], own[other]) for other in ranked if other != key]
    known = [each for each in found if each is not None and each.low is not None]
    return len(known) == len(found) and not any(map(clearly_above, known))


def temperature_table(
    records: Sequence[Record], variants: Mapping[str, str], severities: Sequence[int]
) -> Table:
    """The temperature every method divided by, severity by severity; Vanilla's is 1.

    Geometric means: a temperature is a ratio, and a search that ran away once would otherwise
    stand for all.
    """
    rows = []
    for key, label in variants.items():
        own = [r for r in select(records, variant=key) if r.temperature and r.method != "vanilla"]
        if own:
            cells = tuple(_temperature(select(own, severity=s)) for s in severities)
            rows.append(Row(label, cells, ranked=False))
    return Table(
        "Temperature",
        tuple(Column(f"severity {s}") for s in severities),
        tuple(rows),
        note=f"Geometric means over corruptions and splits. {OVER_SPLITS}",
        corner="Method",
    )


def _temperature(records: Sequence[Record]) -> Cell:
    if not records:
        return Cell(None)
    mean = mean_over_splits(records, lambda record: log(record.temperature or 1.0), least=None)
    ends = (None if end is None else exp(end) for end in (mean.low, mean.high))
    return Cell(exp(mean.value), *ends)


def chosen_table(records: Sequence[Record], ladder: Sequence[str]) -> Table:
    """How often each surrogate set was chosen, in percent of the targets of a severity.

    Args:
        records: Of which those that chose are counted.
        ladder: Names of the surrogate sets, in order.
    """
    choices = [record for record in records if record.chosen]
    sets = list(dict.fromkeys([*ladder, *(record.chosen for record in choices)]))
    labels = {record.variant: record.label for record in choices}
    rows: list[Row] = []
    for key, label in labels.items():
        own = select(choices, variant=key)
        for index, severity in enumerate(
            sorted({r.severity for r in own if r.severity is not None})
        ):
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
