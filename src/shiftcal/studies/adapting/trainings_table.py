"""Every training of a study as a row of ``trainings.csv``, written and read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from shiftcal.errors import FileError
from shiftcal.studies.adapting.results import Facts, Failure

TRAININGS = "trainings.csv"
_FAILED = "failed"
_NAMES = tuple(field.name for field in fields(Facts))
_READ: dict[Any, Any] = {"str": str, "int": int, "float": float}
_TYPES = {field.name: _READ[field.type] for field in fields(Facts)}


def trainings_to_csv(facts: Sequence[Facts], failures: Sequence[Failure]) -> str:
    """Networks in numbers with all digits, then those that diverged with their reason."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*_NAMES, _FAILED], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(each), _FAILED: ""} for each in facts)
    for failure in failures:
        told = {"task": failure.task, "trainer": failure.trainer, "seed": failure.seed}
        writer.writerow({**told, _FAILED: failure.reason})
    return text.getvalue()


def trainings_from_csv(text: str) -> tuple[list[Facts], list[Failure]]:
    """What :func:`trainings_to_csv` was given.

    Raises:
        FileError: If the text is something else.
    """
    facts, failures = [], []
    try:
        for row in csv.DictReader(io.StringIO(text, newline=""), strict=True):
            if row[_FAILED]:
                told = row["task"], row["trainer"], int(row["seed"])
                failures.append(Failure(*told, row[_FAILED]))
            else:
                facts.append(Facts(**{name: _TYPES[name](row[name]) for name in _NAMES}))
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise FileError(
            f"{TRAININGS} is damaged, or not that of a study of domain adaptation: {error!r}. "
            "Have the report made again: shiftcal reproduce FOLDER"
        ) from error
    return facts, failures
