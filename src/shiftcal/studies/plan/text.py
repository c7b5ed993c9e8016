"""A plan as TOML, so that what was run can be run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from shiftcal.studies.plan.plan import Plan


def to_toml(plan: Plan) -> str:
    """The plan as :func:`~shiftcal.studies.plan.reading.read_plan` reads it; defaults written out."""
    values = asdict(plan)
    values["methods"] = [{"name": m.name, "label": m.label, **m.settings} for m in plan.methods]
    tables = ("model", "data", "calibration", "shifts", "options")
    lines = [
        f"{key} = {_value(value)}"
        for key, value in values.items()
        if key not in (*tables, "ladders") and value is not None
    ]
    for name in tables:
        lines += _table(name, values[name])
    for ladder in values["ladders"]:
        lines += ["", "[[ladders]]", *_entries(ladder)]
    return "\n".join(lines) + "\n"


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    nested = [key for key, value in values.items() if key == "sets" and value]
    plain = {key: value for key, value in values.items() if key not in (*nested, "sets")}
    lines = ["", f"[{name}]", *_entries(plain)] if plain else []
    for key in nested:
        for each in values[key]:
            lines += ["", f"[[{name}.{key}]]", *_entries(each)]
    return lines


def _entries(values: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in values.items() if value is not None]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items())
        return f"{{{inside}}}"
    if len(value) and any(isinstance(each, Mapping) for each in value):
        return "[\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
    return f"[{', '.join(_value(each) for each in value)}]"
