"""How much of the calibration error each part takes away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._pairs import ece_difference, paired
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, select
from shiftcal.studies.showing import in_words, percent


@dataclass(frozen=True)
class Step:
    """From one method to the next.

    Attributes:
        name: What the next one adds.
        before: Method without it.
        after: Method with it.
    """

    name: str
    before: str
    after: str


SURROGATES = Step("surrogate sets (TS to STS)", "ts", "sts")
ADAPTATION = Step("adaptation (STS to SAC)", "sts", "sac")
LABELS = Step("target labels (SAC to oracle)", "sac", "oracle")
STEPS = (
    Step("clean temperature (Vanilla to TS)", "vanilla", "ts"),
    SURROGATES,
    ADAPTATION,
    Step("both (TS to SAC)", "ts", "sac"),
    LABELS,
)


def shares_table(records: Sequence[Record], severities: Sequence[int]) -> Table:
    """Change of mean ECE from one method to the next, by severity; below zero is better."""
    shifted = [s for s in severities if s]
    asked: list[tuple[str, Sequence[int]]] = [(f"severity {s}", [s]) for s in severities]
    if len(shifted) > 1:
        asked.append((f"mean of {in_words(shifted)}", shifted))
    rows = []
    for step in STEPS:
        found = [difference(records, step, which) for _, which in asked]
        if any(each is not None for each in found):
            cells = tuple(Cell(None) if each is None else percent(each) for each in found)
            rows.append(Row(step.name, cells))
    return Table(
        "Change of mean ECE that each part makes",
        tuple(Column(name, unit="points") for name, _ in asked),
        tuple(rows),
        note=(
            "Below zero the part lowers the ECE. Differences are taken within each split; "
            "intervals: 95 %, over the splits."
        ),
        corner="Part",
    )


def difference(records: Sequence[Record], step: Step, severities: Sequence[int]) -> Mean | None:
    """What a step changes over these severities, a fraction; ``None`` if a method is missing."""
    here = select(records, severity=severities)
    return paired(_first_of(here, step.after), _first_of(here, step.before), ece_difference)


def _first_of(records: Sequence[Record], method: str) -> list[Record]:
    """The first line of a method, should the plan have several."""
    own = select(records, method=method)
    return [record for record in own if record.variant == own[0].variant]
