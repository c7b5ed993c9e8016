"""Corruptions of tabular rows: an array or a DataFrame in, the same rows, harder to classify, out.

One file is one corruption, found by its file name: ``tabular.names()`` lists them,
``tabular.get("noise")`` and ``tabular.Noise`` give the class.
"""

from __future__ import annotations

from typing import Any

from shiftcal._registry import Registry
from shiftcal.corruptions.tabular.base import TabularCorruption

_registry: Registry[TabularCorruption] = Registry(
    "shiftcal.corruptions.tabular", "corruption of rows", TabularCorruption, space="_"
)
names = _registry.names
get = _registry.get

__all__ = ["TabularCorruption", "get", "names"]


def __getattr__(name: str) -> Any:
    by_class = {file.replace("_", " ").title().replace(" ", ""): file for file in names()}
    if name in by_class:
        return get(by_class[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(get(name).__name__ for name in names())]
