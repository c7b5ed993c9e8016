"""Records of evaluations, means over them, and differences between them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal.errors import FileError
from shiftcal.files import atomic_write
from shiftcal.numerics.samples import mean_interval
from shiftcal.studies.archive import Archive
from shiftcal.studies.plan import Plan

# --------------------------------------------------------------------------------------
# One evaluation: a variant, a split, a target, and what came of it.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """A row of ``records.csv``; fractions, not percent.

    Attributes:
        panel: As in the variant.
        setting: As in the variant.
        variant: Its key.
        label: Its label.
        method: Its method.
        calibration: Corruption of the surrogate sets.
        n_sets: How many sets it learnt from.
        n_calibration: Images in each.
        split: Seed of the split.
        draw: Which draw of the method's own, from 0.
        target: Name of the scored set.
        corruption: What shifted it.
        severity: How strongly; ``None`` for a natural shift.
        n: Test images.
        ece: Top-1, bins of equal size, of the calibrated confidences.
        debiased_ece: Root mean square error over the same bins, with their noise subtracted; as
            :func:`shiftcal.metrics.debiased_ece`, not an ECE without its bias.
        nll: Mean negative log-likelihood.
        brier: Mean squared error over all classes.
        accuracy: Of the calibrated predictions.
        confidence: Mean calibrated confidence.
        raw_confidence: Mean confidence as the model gave it.
        temperature: What was divided by, if the method has one temperature.
        chosen: Surrogate set that was chosen, if the method chooses.
        flags: Codes of the flags raised, separated by spaces.
        arrays: File of the target's logits, from the folder of the run.
        key: Digest of everything that decides this row.
    """

    panel: str
    setting: str
    variant: str
    label: str
    method: str
    calibration: str
    n_sets: int
    n_calibration: int
    split: int
    draw: int
    target: str
    corruption: str
    severity: int | None
    n: int
    ece: float
    debiased_ece: float
    nll: float
    brier: float
    accuracy: float
    confidence: float
    raw_confidence: float
    temperature: float | None
    chosen: str
    flags: str
    arrays: str
    key: str

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)


_NAMES = tuple(field.name for field in fields(Record))
_WHOLE = {field.name for field in fields(Record) if field.type == "int"}
_NUMBER = {field.name for field in fields(Record) if field.type == "float"}


def records_to_csv(records: Iterable[Record]) -> str:
    """A table with a row for each, all digits kept."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(_NAMES)
    for record in records:
        row = ["" if value is None else value for value in record.to_dict().values()]
        # A reader ends a row at a carriage return, which the module would not quote by itself.
        odd = any(isinstance(value, str) and "\r" in value for value in row)
        (quoting if odd else writer).writerow(row)
    return text.getvalue()


def write_records(records: Iterable[Record], file: Path) -> None:
    """Write ``records.csv``, whole or not at all."""
    with atomic_write(file) as temporary:
        temporary.write_text(records_to_csv(records), "utf-8")


def read_records(file: Path) -> list[Record]:
    """Read ``records.csv`` back, to the last digit.

    Raises:
        FileError: If it is not there, or is damaged.
    """
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            text = opened.read()
        if not text.endswith("\n"):
            raise ValueError("its last row is cut off")
        rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        _check_columns(rows.fieldnames or ())
        return [_record(row) for row in rows]
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise FileError(
            f"{file} is damaged: {error}. Remove it, and run the study again: it is made of what "
            "is stored beside it."
        ) from error


def record_of(values: dict[str, Any]) -> Record:
    """A record from what :meth:`Record.to_dict` gave.

    Raises:
        TypeError: If a value is missing, or there are others.
    """
    return Record(**values)


def _check_columns(names: Iterable[object]) -> None:
    if set(names) != set(_NAMES):
        raise ValueError(f"its columns are {', '.join(map(str, names))}")


def _record(row: dict[str, str]) -> Record:
    _check_columns(row)
    if None in row.values():
        raise ValueError("a row has fewer fields than there are columns")
    return Record(**{name: _value(name, row[name]) for name in _NAMES})


def _value(name: str, text: str) -> Any:
    if name in _WHOLE:
        return int(text)
    if name in _NUMBER:
        return float(text)
    if name == "severity":
        return int(text) if text else None
    if name == "temperature":
        return float(text) if text else None
    return text


# --------------------------------------------------------------------------------------
# The records of a run, and means over them.
# --------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------
# Two variants on the same targets of the same splits.
# --------------------------------------------------------------------------------------

# With fewer splits, all of them on one side is no rare event.
_ENOUGH = 5
CLEARLY = (
    "Of two ECEs one is clearly larger if the 95 % interval of their difference, taken within each "
    f"split, lies above 0, or if it is larger in each of {_ENOUGH} splits or more."
)


def paired(
    records: Iterable[Record],
    others: Iterable[Record],
    pick: Callable[[Record, Record], float] = lambda record, other: record.ece - other.ece,
) -> Mean | None:
    """The mean over splits of a number of two records on the same split and target.

    Args:
        records: Of one variant; with several draws, each has the same partner. Those without a
            partner are left out.
        others: Of another variant with one draw.
        pick: The number of both; by default how much more ECE the record has. Its interval may
            reach below 0.
    """
    partners = {(other.split, other.target): other for other in others}
    by_split: dict[int, list[float]] = {}
    for record in records:
        partner = partners.get((record.split, record.target))
        if partner is not None:
            by_split.setdefault(record.split, []).append(pick(record, partner))
    splits = tuple(float(np.mean(values)) for values in by_split.values())
    return Mean(*mean_interval(splits), splits) if splits else None


def same_set(records: Iterable[Record], others: Iterable[Record]) -> Mean | None:
    """The share of records that chose the same surrogate set as their partner."""
    share = paired(records, others, lambda one, other: float(one.chosen == other.chosen))
    if share is None or share.low is None or share.high is None:
        return share
    return replace(share, low=max(0.0, share.low), high=min(1.0, share.high))


def clearly_above(difference: Mean) -> bool:
    """Whether a difference is above 0 beyond chance, as :data:`CLEARLY` says.

    Where a method chooses one set in some splits and another in others, one large difference
    widens the interval and must not hide that all are above 0. One split alone tells nothing.
    """
    if difference.low is None:
        return False
    splits = difference.splits
    return difference.low > 0 or (len(splits) >= _ENOUGH and min(splits) > 0)
