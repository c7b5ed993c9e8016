"""Outcomes on disk: a file for each target of a split, found again by content."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write, make_folder
from shiftcal.studies.stages.outcome import Outcome

FOLDER = "evaluated"
_KINDS: dict[Any, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "float | None": (float, type(None)),
    "str": (str,),
}
_TYPES = {field.name: _KINDS[field.type] for field in fields(Outcome)}


def read_outcomes(folder: Path) -> dict[str, Outcome]:
    """Every outcome that is there, by key; a damaged file counts as none."""
    found: dict[str, Outcome] = {}
    for file in sorted((folder / FOLDER).glob("split-*/*.json")):
        found |= _read(file)
    return found


def keep_outcomes(folder: Path, split: int, target: str, outcomes: Mapping[str, Outcome]) -> None:
    """Add the outcomes of a target to those that are there.

    Raises:
        FileError: If they cannot be written.
    """
    file = folder / FOLDER / f"split-{split}" / f"{target}.json"
    make_folder(file.parent)
    all_of_them = {**_read(file), **outcomes}
    with atomic_write(file, durable=False) as temporary:
        document = {key: vars(outcome) for key, outcome in all_of_them.items()}
        temporary.write_text(json.dumps(document, indent=0) + "\n", "utf-8")


def _read(file: Path) -> dict[str, Outcome]:
    try:
        told = json.loads(file.read_text("utf-8"))
        found = {key: _outcome(values) for key, values in told.items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return {}  # evaluated again
    return {key: outcome for key, outcome in found.items() if _is_finite(outcome)}


def _outcome(values: dict[str, Any]) -> Outcome:
    """An outcome whose fields are what they must be.

    Raises:
        TypeError: If one is missing, or is something else.
    """
    for name, wanted in _TYPES.items():
        if type(values[name]) not in wanted:
            raise TypeError(name)
    return Outcome(**values)


def _is_finite(outcome: Outcome) -> bool:
    """Whether every number is one; files may say ``NaN``, and a mean over it would say so, too."""
    return all(math.isfinite(v) for v in vars(outcome).values() if isinstance(v, float))
