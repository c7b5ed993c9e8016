"""Values as TOML writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, time
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def entries(values: Mapping[str, Any]) -> list[str]:
    """A line for each entry of a table; what is ``None`` has none."""
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
        return f"{{{', '.join(entries(value))}}}"
    if len(value) and any(isinstance(each, Mapping) for each in value):
        return "[\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
    return f"[{', '.join(_value(each) for each in value)}]"
