"""What a command has to say, before it is printed."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Report:
    """The outcome of a command, for people and for programs.

    Attributes:
        command: Name of the command.
        document: What ``--json`` prints, but for what :func:`to_json` adds.
        text: What is printed without it.
        as_json: Which of the two is wanted.
        failed_gate: Why a gate such as ``--max-ece`` failed; empty if none did.
        bad_input: What part of the input could not be used; empty if all could.
    """

    command: str
    document: dict[str, Any]
    text: str
    as_json: bool
    failed_gate: str = ""
    bad_input: str = ""


@dataclass(frozen=True)
class Ended:
    """The outcome of a command that has printed its lines itself, as they came.

    Attributes:
        status: Its exit status; why it is not 0 has been said.
    """

    status: int


def to_json(report: Report, *, warnings: list[str]) -> str:
    """The one JSON document of a command, in ASCII.

    Numbers that are not finite become ``null``: JSON has no word for them.

    Args:
        report: What the command returned.
        warnings: Texts of the warnings given on the way.
    """
    document = {
        "shiftcal": version("shiftcal"),
        "command": report.command,
        **report.document,
        "warnings": warnings,
    }
    return json.dumps(_plain(document), indent=1, allow_nan=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
