"""Corruptions: images in, the same images harder to recognise out.

One file is one corruption, found by its file name: ``corruptions.names()`` lists them,
``corruptions.get("pixelate")`` and ``corruptions.Pixelate`` give the class.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shiftcal._registry import Registry
from shiftcal.corruptions.base import Corruption

if TYPE_CHECKING:
    from shiftcal.corruptions._corrupt import corrupt
    from shiftcal.corruptions._custom import Custom
    from shiftcal.corruptions._resolve import as_corruption
    from shiftcal.corruptions._strengths import Strengths

_registry: Registry[Corruption] = Registry(
    "shiftcal.corruptions", "corruption", Corruption, space="_"
)
names = _registry.names
get = _registry.get

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "Custom": "_custom",
    "Strengths": "_strengths",
    "corrupt": "_corrupt",
    "as_corruption": "_resolve",
}

__all__ = ["Corruption", "Custom", "Strengths", "as_corruption", "corrupt", "get", "names"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        module = importlib.import_module(f"shiftcal.corruptions.{_WHERE[name]}")
        return globals().setdefault(name, getattr(module, name))
    by_class = {file.replace("_", " ").title().replace(" ", ""): file for file in names()}
    if name in by_class:
        return get(by_class[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(get(name).__name__ for name in names())]
