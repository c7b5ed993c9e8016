"""Digests of whatever decides what a model gives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from shiftcal.models._value_digest import Unknown, ValueDigest


def digest(parts: Iterable[str | bytes | memoryview]) -> str:
    """SHA-256 of the parts, each with its length before it, so that none runs into the next."""
    made = hashlib.sha256()
    for part in parts:
        data = memoryview(part.encode() if isinstance(part, str) else part)
        made.update(data.nbytes.to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


def of_object(value: Any) -> str | None:
    """The digest of a module, function or fitted classifier with all it holds and calls.

    ``None`` if something in it cannot be told apart from something else.
    """
    try:
        return ValueDigest().of(value)
    except Unknown:
        return None
