"""Corruptions of texts: a list of texts in, the same texts, harder to classify, out.

One file is one corruption, found by its file name: ``text.names()`` lists them,
``text.get("typos")`` and ``text.Typos`` give the class.
"""

from __future__ import annotations

from typing import Any

from shiftcal._registry import Registry
from shiftcal.corruptions.text.base import TextCorruption

_registry: Registry[TextCorruption] = Registry(
    "shiftcal.corruptions.text", "corruption of texts", TextCorruption, space="_"
)
names = _registry.names
get = _registry.get

__all__ = ["TextCorruption", "get", "names"]


def __getattr__(name: str) -> Any:
    by_class = {file.replace("_", " ").title().replace(" ", ""): file for file in names()}
    if name in by_class:
        return get(by_class[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(get(name).__name__ for name in names())]
