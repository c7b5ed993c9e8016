"""Facts of trained networks on disk, found again by content."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write, make_folder
from shiftcal.studies.adapting.results import Facts
from shiftcal.studies.stages.kept import FOLDER

_KINDS: dict[Any, type] = {"str": str, "int": int, "float": float}
_TYPES = {field.name: _KINDS[field.type] for field in fields(Facts)}


def read_facts(run: Path) -> dict[str, Facts]:
    """Every network's that are there, by what they are known by; a damaged file counts as none."""
    try:
        told = json.loads(_file(run).read_text("utf-8"))
        return {key: _facts(values) for key, values in told.items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return {}  # looked at again


def keep_facts(run: Path, facts: Mapping[str, Facts]) -> None:
    """Write them, in the place of those that are there.

    Raises:
        FileError: If they cannot be written.
    """
    make_folder(_file(run).parent)
    with atomic_write(_file(run), durable=False) as temporary:
        document = {key: asdict(each) for key, each in facts.items()}
        temporary.write_text(json.dumps(document, indent=0) + "\n", "utf-8")


def _file(run: Path) -> Path:
    return run / FOLDER / "networks.json"


def _facts(values: dict[str, object]) -> Facts:
    for name, wanted in _TYPES.items():
        value = values[name]
        if type(value) is not wanted or (isinstance(value, float) and not math.isfinite(value)):
            raise TypeError(name)
    return Facts(**values)  # type: ignore[arg-type]
