"""Which training a checkpoint is of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

# Differences that are named.
_NAMED = 4
_ABSENT = "absent"


def plain_json(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The same as JSON gives it back, so that it can be compared with what was read."""
    read: dict[str, Any] = json.loads(json.dumps(identity, allow_nan=False, sort_keys=True))
    return read


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two trainings, in words; empty if nothing does."""
    one, two = dict(_leaves(before)), dict(_leaves(now))
    names = [
        name for name in sorted({*one, *two}) if one.get(name, _ABSENT) != two.get(name, _ABSENT)
    ]
    told = [
        f"{name} was {one.get(name, _ABSENT)} and is {two.get(name, _ABSENT)}"
        for name in names[:_NAMED]
    ]
    if len(names) > _NAMED:
        told.append(f"and {len(names) - _NAMED} more")
    return "; ".join(told)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and (value or not name):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, json.dumps(value, sort_keys=True)
