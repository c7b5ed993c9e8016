"""The records of a run, and means over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shiftcal.numerics.intervals import mean_interval
from shiftcal.studies.archive import Archive
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.record import Record


@dataclass(frozen=True)
class Mean:
    """A mean over splits.

    Attributes:
        value: The mean of the splits' own means.
        low: Lower end of its interval; ``None`` with one split.
        high: Upper end.
        splits: The mean of every split, in the order of the seeds.
    """

    value: float
    low: float | None
    high: float | None
    splits: tuple[float, ...]


@dataclass(frozen=True)
class Results:
    """What a study's findings are made of.

    Attributes:
        plan: The plan as it was run.
        records: Every evaluation.
        archive: The stored scores.
    """

    plan: Plan
    records: tuple[Record, ...]
    archive: Archive

    def select(self, **wanted: object) -> list[Record]:
        """Records whose fields have these values; a tuple or list stands for any of its items."""
        return select(self.records, **wanted)

    @cached_property
    def variants(self) -> tuple[str, ...]:
        """Keys of the variants, in the order they were planned."""
        return tuple(dict.fromkeys(record.variant for record in self.records))

    def label(self, variant: str) -> str:
        """What a variant is called."""
        return next(record.label for record in self.records if record.variant == variant)

    @cached_property
    def severities(self) -> tuple[int, ...]:
        """Every severity there is a record of, rising."""
        found = {record.severity for record in self.records if record.severity is not None}
        return tuple(sorted(found))

    @cached_property
    def corruptions(self) -> tuple[str, ...]:
        """Every corruption of a target, in the order of the plan."""
        there = {record.corruption for record in self.records if record.severity}
        return tuple(name for name in self.plan.shifts.corruptions if name in there)


def select(records: Iterable[Record], **wanted: object) -> list[Record]:
    """Records whose fields have these values; a tuple or list stands for any of its items."""
    allowed = {
        name: tuple(value) if isinstance(value, (tuple, list, set, range)) else (value,)
        for name, value in wanted.items()
    }
    return [
        record
        for record in records
        if all(getattr(record, name) in values for name, values in allowed.items())
    ]


def mean_over_splits(
    records: Sequence[Record],
    pick: Callable[[Record], float] = lambda record: record.ece,
    *,
    least: float | None = 0.0,
) -> Mean:
    """The mean of some records of one variant: in every split first, then over the splits.

    The interval is Student's at 95 %, over the splits. It tells how much the choice of calibration
    and test images matters, not how another network or another data set would do: all splits are
    of the same images.

    Args:
        records: At least one.
        pick: Which number.
        least: What it cannot be below, and so no end of an interval; ``None`` if it can be
            anything.
    """
    by_split: dict[int, list[float]] = {}
    for record in records:
        by_split.setdefault(record.split, []).append(pick(record))
    splits = tuple(float(np.mean(values)) for values in by_split.values())
    value, low, high = mean_interval(splits)
    if low is not None and least is not None:
        low = max(least, low)
    return Mean(value, low, high, splits)
