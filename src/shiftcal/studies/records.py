"""Records of evaluations, means over them, and differences between them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shiftcal.errors import FileError
from shiftcal.files import atomic_write
from shiftcal.numerics.samples import mean_interval

if TYPE_CHECKING:
    from shiftcal.studies.plan import Plan
    from shiftcal.studies.sources import Archive


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
        n_sets: How many sets it learned from.
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


def to_csv(kind: Any, rows: Iterable[Any], *more: str) -> str:
    """A table of dataclasses with all digits.

    Args:
        kind: The dataclass, whose fields are the columns.
        rows: Its instances, or dictionaries of columns; others are empty.
        more: Further columns.
    """
    text = io.StringIO(newline="")
    columns = [*(field.name for field in fields(kind)), *more]
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(row if isinstance(row, dict) else asdict(row) for row in rows)
    return text.getvalue()


def write_records(records: Iterable[Record], file: Path) -> None:
    """Write ``records.csv``, whole or not at all."""
    with atomic_write(file) as temporary:
        temporary.write_text(to_csv(Record, records), "utf-8")


def read_records(file: Path) -> list[Record]:
    """Read ``records.csv`` back, to the last digit.

    Raises:
        FileError: If it is missing or damaged.
    """
    kinds = {field.name: str(field.type) for field in fields(Record)}
    try:
        text = file.read_bytes().decode()
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        if header != list(kinds) or text[-1] != "\n":
            raise ValueError(f"its last row is cut off, or its columns are {', '.join(header)}")
        return [
            Record(*(_value(*pair) for pair in zip(kinds.values(), row, strict=True)))
            for row in rows
        ]
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    except (ValueError, csv.Error) as error:
        raise FileError(f"{file} is damaged: {error}. Run the study again.") from error


def _value(kind: str, text: str) -> Any:
    if kind.endswith("None") and not text:
        return None
    return {"str": str, "int": int, "float": float}[kind.partition(" ")[0]](text)


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

    @cached_property
    def severities(self) -> tuple[int, ...]:
        """Every severity there is a record of, rising."""
        return tuple(sorted({r.severity for r in self.records if r.severity is not None}))


def select(records: Iterable[Record], **wanted: object) -> list[Record]:
    """Records whose fields have these values; a tuple or list stands for any of its items."""
    allowed = {
        name: value if isinstance(value, (tuple, list)) else (value,)
        for name, value in wanted.items()
    }
    return [
        record
        for record in records
        if all(getattr(record, name) in values for name, values in allowed.items())
    ]


def labels_of(records: Iterable[Record]) -> dict[str, str]:
    """Labels of the variants by key, in the order of the plan."""
    return {record.variant: record.label for record in records}


# --------------------------------------------------------------------------------------
# Means over splits
# --------------------------------------------------------------------------------------


class Mean(NamedTuple):
    """A mean over splits.

    Attributes:
        value: The mean of the means of the splits.
        low: Lower end of its interval; ``None`` with one split.
        high: Upper end.
        splits: The mean of every split.
    """

    value: float
    low: float | None
    high: float | None
    splits: tuple[float, ...]


def mean_over_splits(
    numbers: Iterable[tuple[int, float]], *, least: float = -math.inf, most: float = math.inf
) -> Mean | None:
    """The mean of numbers that each have a split: within every split first, then over the splits.

    The interval is Student's at 95 %, over the splits. It tells how much the choice of calibration
    and test images matters, not how another network or another data set would do: all splits are
    of the same images.

    Args:
        numbers: Split and number; none of them has no mean.
        least: The least number possible, and so the lowest end of an interval.
        most: The largest number possible.
    """
    by_split: dict[int, list[float]] = {}
    for split, number in numbers:
        by_split.setdefault(split, []).append(number)
    if not by_split:
        return None
    splits = tuple(float(np.mean(values)) for values in by_split.values())
    value, low, high = mean_interval(splits)
    if low is not None and high is not None:
        low, high = max(least, low), max(value, min(most, high))
    return Mean(value, low, high, splits)


def mean_of(records: Iterable[Record], field: str = "ece") -> Mean | None:
    """The mean of a field that is a fraction."""
    return mean_over_splits(((r.split, getattr(r, field)) for r in records), least=0.0, most=1.0)


# With fewer splits, all of them on one side is no rare event.
_ENOUGH = 5
CLEARLY = (
    "Of two ECEs one is clearly larger if the 95 % interval of their difference, taken within each "
    f"split, lies above 0, or if it is larger in each of {_ENOUGH} splits or more."
)


def _pairs(records: Iterable[Record], others: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Records with the one of ``others`` on the same split and target; without one, left out."""
    partners = {(other.split, other.target): other for other in others}
    found = ((record, partners.get((record.split, record.target))) for record in records)
    return [(record, other) for record, other in found if other is not None]


def difference(records: Iterable[Record], others: Iterable[Record]) -> Mean | None:
    """How much more ECE records have than others on the same split and target."""
    return mean_over_splits((r.split, r.ece - other.ece) for r, other in _pairs(records, others))


def same_set(records: Iterable[Record], others: Iterable[Record]) -> Mean | None:
    """The share of records that chose the same surrogate set as others did."""
    pairs = _pairs(records, others)
    shares = ((r.split, float(r.chosen == other.chosen)) for r, other in pairs)
    return mean_over_splits(shares, least=0.0, most=1.0)


def clearly_above(difference: Mean) -> bool:
    """Whether a difference is above 0 beyond chance, as :data:`CLEARLY` says.

    Where a method chooses one set in some splits and another in others, one large difference
    widens the interval and must not hide that all are above 0. One split alone tells nothing.
    """
    if difference.low is None:
        return False
    return difference.low > 0 or (len(difference.splits) >= _ENOUGH and min(difference.splits) > 0)
