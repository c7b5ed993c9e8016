"""One evaluation: a variant, a split, a target, and what came of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.errors import FileError


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
