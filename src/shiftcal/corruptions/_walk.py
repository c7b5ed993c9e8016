"""Digests of values and of all they hold, the same in every process."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

_PLAIN = (type(None), bool, float, complex, str, type(Ellipsis), type(NotImplemented))


class Unknown(Exception):
    """Something that cannot be digested."""


class Walk(ABC):
    """Goes through a value and what it holds, each thing once, also where it holds itself."""

    def __init__(self) -> None:
        self._done: dict[object, bytes] = {}
        self._open: list[object] = []
        self._kept: list[object] = []  # so that no number of an object is given to another

    def of(self, value: object) -> bytes:
        """A digest of anything."""
        kind = type(value)
        if kind in _PLAIN:
            return hashed(kind.__name__, repr(value))
        if kind in (int, bytes):
            return hashed(kind.__name__, f"{value:x}" if kind is int else value)  # type: ignore[arg-type]
        return self.once(id(value), value, lambda: self.compound(value))

    def once(self, mark: object, value: object, make: Callable[[], bytes]) -> bytes:
        """What ``make`` gives, called once for a mark; where it comes upon itself, how far up."""
        if mark in self._open:
            return hashed("again", str(len(self._open) - self._open.index(mark)))
        if mark not in self._done:
            self._kept.append(value)
            self._open.append(mark)
            self._done[mark] = make()
            self._open.pop()
        return self._done[mark]

    @abstractmethod
    def compound(self, value: Any) -> bytes:
        """A digest of what is no plain value."""

    def each(self, tag: str, values: Iterable[object]) -> bytes:
        """Values in their order."""
        return hashed(tag, *(self.of(value) for value in values))

    def mapping(self, value: Mapping[Any, Any]) -> bytes:
        """Keys and values in their order, which code that goes through them sees."""
        return self.each("dict", [item for pair in value.items() for item in pair])

    def attributes(self, value: Mapping[str, Any], *, but: Iterable[str] = ()) -> bytes:
        """Names and values, in the order of the names."""
        names = sorted(value.keys() - set(but))
        return hashed("attributes", *(p for n in names for p in (n, self.of(value[n]))))

    def some(self, value: Iterable[object]) -> bytes:
        """A set, whose order is another in every process."""
        return hashed(type(value).__name__, *sorted(self.of(item) for item in value))

    def array(self, value: np.ndarray[Any, Any] | np.generic) -> bytes:
        """Type, shape and content."""
        whole = np.asarray(value)
        about = f"{whole.dtype.descr if whole.dtype.names else whole.dtype.str} {whole.shape}"
        if whole.dtype.hasobject:
            return hashed("objects", about, self.of(whole.tolist()))
        flat = np.ascontiguousarray(whole).reshape(-1).view(np.uint8)
        return hashed("array", type(value).__name__, about, flat.data)


def hashed(*parts: str | bytes | memoryview) -> bytes:
    """SHA-256 of parts, each with its length before it, so that none runs into the next."""
    made = hashlib.sha256()
    for part in parts:
        data = memoryview(part.encode() if isinstance(part, str) else part)
        made.update(data.nbytes.to_bytes(8, "little"))
        made.update(data)
    return made.digest()
