"""Two variants on the same targets of the same splits, compared pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean, mean_over_splits


def paired(
    records: Sequence[Record],
    others: Sequence[Record],
    pick: Callable[[Record, Record], float],
) -> Mean | None:
    """The mean over splits of a number that a record and its partner have together.

    Partners have the same split and the same target. Records without a partner are left out.

    Args:
        records: Of one variant; with several draws, each has the same partner.
        others: Of another variant with one draw.
        pick: The number of a record and its partner.
    """
    partners = {(other.split, other.target): other for other in others}
    there = [record for record in records if (record.split, record.target) in partners]
    if not there:
        return None
    return mean_over_splits(
        there, lambda record: pick(record, partners[record.split, record.target])
    )


def ece_difference(record: Record, other: Record) -> float:
    """How much more ECE the record has."""
    return record.ece - other.ece


def same_set(record: Record, other: Record) -> float:
    """1 if both chose the same surrogate set, else 0."""
    return float(record.chosen == other.chosen)
