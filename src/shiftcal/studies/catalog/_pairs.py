"""Two variants on the same targets of the same splits, compared pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from shiftcal.numerics.intervals import mean_interval
from shiftcal.studies.record import Record
from shiftcal.studies.results import Mean


def pairs(records: Sequence[Record], others: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """Every record with its partner: the one of the same split and target.

    Args:
        records: Of one variant; with several draws, each has the same partner.
        others: Of another variant with one draw.
    """
    partners = {(other.split, other.target): other for other in others}
    for record in records:
        partner = partners.get((record.split, record.target))
        if partner is not None:
            yield record, partner


def paired(
    records: Sequence[Record],
    others: Sequence[Record],
    pick: Callable[[Record, Record], float],
) -> Mean | None:
    """The mean over splits of a number that a record and its partner have together.

    Unlike that of an error, its interval may reach below 0.

    Args:
        records: As for :func:`pairs`; those without a partner are left out.
        others: As for :func:`pairs`.
        pick: The number of a record and its partner.
    """
    by_split: dict[int, list[float]] = {}
    for record, partner in pairs(records, others):
        by_split.setdefault(record.split, []).append(pick(record, partner))
    if not by_split:
        return None
    splits = tuple(float(np.mean(own)) for own in by_split.values())
    return Mean(*mean_interval(splits), splits)


def ece_difference(record: Record, other: Record) -> float:
    """How much more ECE the record has."""
    return record.ece - other.ece


def in_points(difference: Mean) -> str:
    """A difference of errors for a sentence: ``+1.41 ± 0.37 points``; without interval no ±."""
    value = f"{100 * difference.value:+.2f}"
    if difference.high is None:
        return f"{value} points"
    return f"{value} ± {100 * (difference.high - difference.value):.2f} points"


def same_set(records: Sequence[Record], others: Sequence[Record]) -> Mean | None:
    """The share of records that chose the same surrogate set as their partner."""
    found = paired(records, others, lambda one, other: float(one.chosen == other.chosen))
    if found is None or found.low is None or found.high is None:
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))
