"""Corruptions: images in, the same images harder to recognise out.

One file is one corruption, found by its file name: ``corruptions.names()`` lists them,
``corruptions.get("pixelate")`` and ``corruptions.Pixelate`` give the class.
"""

from typing import Any

from shiftcal._registry import Registry
from shiftcal.corruptions.base import Corruption

_registry: Registry[Corruption] = Registry(
    "shiftcal.corruptions", "corruption", Corruption, space="_"
)
names = _registry.names
get = _registry.get

__all__ = ["Corruption", "get", "names"]


def __getattr__(name: str) -> Any:
    by_class = {file.replace("_", " ").title().replace(" ", ""): file for file in names()}
    if name in by_class:
        return get(by_class[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(get(name).__name__ for name in names())]
