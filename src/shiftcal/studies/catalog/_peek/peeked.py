"""SAC with a few rows of the target beside SAC with all of them: numbers and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.catalog._pairs import ece_difference, paired, same_set
from shiftcal.studies.catalog._spans import spans
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, Results, mean_over_splits, select
from shiftcal.studies.showing import OVER_SPLITS, percent, severities_in_words

PEEK = "-peek-"
_CORNER = "Rows looked at"


@dataclass(frozen=True)
class Peeked:
    """A variant that looks at a few rows.

    Attributes:
        base: Key of the variant that looks at all rows.
        label: What it is called.
        size: How many rows it looks at.
        records: Of all its draws.
        whole: Of the variant that looks at all rows; empty if that was not evaluated.
    """

    base: str
    label: str
    size: int
    records: Sequence[Record]
    whole: Sequence[Record]

    def mean(self, severities: Sequence[int]) -> Mean | None:
        """Mean ECE at these severities, over targets and draws."""
        return _mean(select(self.records, severity=severities))

    def more(self, severities: Sequence[int]) -> Mean | None:
        """How much more ECE it has than with all rows."""
        return paired(select(self.records, severity=severities), self.whole, ece_difference)

    def same(self, severities: Sequence[int]) -> Mean | None:
        """The share of draws that choose the same surrogate set as all rows."""
        return same_set(select(self.records, severity=severities), self.whole)

    def spread(self, severities: Sequence[int]) -> float | None:
        """Standard deviation of the ECE over the draws for one target of one split.

        The variances of all targets and splits are averaged. ``None`` with one draw.
        """
        found: dict[tuple[int, str], list[float]] = {}
        for record in select(self.records, severity=severities):
            found.setdefault((record.split, record.target), []).append(record.ece)
        variances = [np.var(values, ddof=1) for values in found.values() if len(values) > 1]
        return float(np.sqrt(np.mean(variances))) if variances else None


def peeked_of(results: Results) -> list[Peeked]:
    """Every variant that looks at a few rows, in the order of the plan."""
    by_key: dict[str, list[Record]] = {}
    for record in results.records:
        by_key.setdefault(record.variant, []).append(record)
    made = []
    for key, records in by_key.items():
        base, mark, size = key.rpartition(PEEK)
        if mark and records[0].setting == size:
            whole = by_key.get(base, [])
            made.append(Peeked(base, records[0].label, int(size), records, whole))
    return made


def shifted_of(peeked: Sequence[Peeked]) -> list[int]:
    """The severities from 1 on, rising."""
    return sorted({r.severity for each in peeked for r in each.records if r.severity})


def same_set_table(peeked: Sequence[Peeked], severities: Sequence[int]) -> Table:
    """How often the set that all rows choose is chosen, by severity."""
    over = spans(severities)
    columns = [Column(name, unit="%", digits=1) for name in over]
    rows = [
        Row(each.label, tuple(_cell(each.same(span)) for span in over.values())) for each in peeked
    ]
    return Table(
        "Draws that choose the same surrogate set as all rows do",
        tuple(columns),
        tuple(rows),
        note=OVER_SPLITS,
        corner=_CORNER,
    )


def sizes_table(peeked: Sequence[Peeked]) -> Table:
    """The shifted targets: a row for each number of rows, that with all of them last."""
    shifted = shifted_of(peeked)
    columns = (
        Column("mean ECE", unit="%"),
        Column("more than with all rows", unit="points"),
        Column("spread over draws", unit="points"),
        Column("same set as all rows", unit="%", digits=1),
    )
    rows: list[Row] = []
    for base in dict.fromkeys(each.base for each in peeked):
        own = [each for each in peeked if each.base == base]
        for index, each in enumerate(own):
            spread = each.spread(shifted)
            cells = (
                _cell(each.mean(shifted)),
                _cell(each.more(shifted)),
                Cell(None if spread is None else 100 * spread),
                _cell(each.same(shifted)),
            )
            rows.append(Row(each.label, cells, rule_before=bool(rows) and not index))
        whole = select(own[0].whole, severity=shifted)
        if whole:
            rows.append(Row(whole[0].label, (_cell(_mean(whole)), *(Cell(None),) * 3)))
    return Table(
        f"Number of target rows looked at, {severities_in_words(shifted)}",
        columns,
        tuple(rows),
        note=(
            f"{OVER_SPLITS} Spread over draws: standard deviation of the ECE of one target when "
            "other rows are drawn."
        ),
        corner=_CORNER,
    )


def _mean(records: Sequence[Record]) -> Mean | None:
    return mean_over_splits(records) if records else None


def _cell(mean: Mean | None) -> Cell:
    return Cell(None) if mean is None else percent(mean)
