"""A plan as TOML, so that what was run can be run again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, time
from typing import Any

from shiftcal.studies.plan.plan import Plan

_TABLES = ("model", "data", "calibration", "shifts", "options")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(plan: Plan) -> str:
    """The plan as :func:`~shiftcal.studies.read_plan` reads it, with the defaults written out."""
    values = asdict(plan)
    values["methods"] = [{"name": m.name, "label": m.label, **m.settings} for m in plan.methods]
    del values["where"]
    ladders, sets = values.pop("ladders"), values["shifts"].pop("sets")
    lines = _entries({key: value for key, value in values.items() if key not in _TABLES})
    for name in _TABLES:
        if values[name]:
            lines += ["", f"[{name}]", *_entries(values[name])]
    for name, tables in (("shifts.sets", sets), ("ladders", ladders)):
        for each in tables:
            lines += ["", f"[[{name}]]", *_entries(each)]
    return "\n".join(lines) + "\n"


def _entries(values: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in values.items() if value is not None]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    """In quotes; of what JSON leaves as it is, TOML wants one character escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return f"{{{', '.join(_entries(value))}}}"
    if len(value) and any(isinstance(each, Mapping) for each in value):
        return "[\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
    return f"[{', '.join(_value(each) for each in value)}]"
