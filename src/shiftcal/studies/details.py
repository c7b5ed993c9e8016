"""Tables of what lies behind the means: every target, the temperatures, the choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.record import Record
from shiftcal.studies.results import mean_over_splits, select
from shiftcal.studies.showing import OVER_SPLITS, percent


def full_table(records: Sequence[Record], variants: Mapping[str, str]) -> Table:
    """ECE of every target and method, beside the model's own accuracy and confidence there.

    A row is a corruption at a severity; the best of each row is marked, the oracle aside.
    """
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
        cells = [_percent(select(here, variant=key)) for key in variants]
        rows.append(
            Row(
                target,
                (
                    percent(mean_over_splits(first, lambda record: record.accuracy)),
                    percent(mean_over_splits(first, lambda record: record.raw_confidence)),
                    *_marked(cells, list(variants)),
                ),
                rule_before=bool(rows) and here[0].corruption != corruption,
            )
        )
        corruption = here[0].corruption
    return Table(
        "ECE of every target",
        tuple(columns),
        tuple(rows),
        note=f"{OVER_SPLITS} The lowest ECE of a row is marked, the oracle's aside.",
        corner="Target",
    )


def _by_corruption(records: Sequence[Record]) -> list[str]:
    """The targets, those of one corruption together, by severity."""
    order = {name: i for i, name in enumerate(dict.fromkeys(r.corruption for r in records))}
    places = {r.target: (order[r.corruption], r.severity or 0) for r in records}
    return sorted(places, key=places.__getitem__)


def _percent(records: Sequence[Record]) -> Cell:
    return percent(mean_over_splits(records)) if records else Cell(None)


def _marked(cells: Sequence[Cell], keys: Sequence[str]) -> list[Cell]:
    """The cells with the lowest number marked; numbers that print the same are equally low."""
    pairs = list(zip(cells, keys, strict=True))
    ranked = [cell.number for cell, key in pairs if cell.number is not None and key != "oracle"]
    if not ranked:
        return list(cells)
    best = f"{min(ranked):.2f}"
    return [
        replace(cell, mark=key != "oracle" and f"{cell.number:.2f}" == best)
        if cell.number is not None
        else cell
        for cell, key in pairs
    ]


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
