"""Calibration maps: labelled logits in, a fitted map from logits to probabilities out.

One file is one map, found by its file name: ``maps.names()`` lists them,
``maps.get("temperature")`` and ``maps.Temperature`` give the class.
"""

from typing import Any

from shiftcal._registry import Registry
from shiftcal.maps.base import Map

_registry: Registry[Map] = Registry("shiftcal.maps", "calibration map", Map)
names = _registry.names
get = _registry.get

__all__ = ["Map", "get", "names"]


def __getattr__(name: str) -> Any:
    by_class = {file.replace("-", " ").title().replace(" ", ""): file for file in names()}
    if name in by_class:
        return get(by_class[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(get(name).__name__ for name in names())]
