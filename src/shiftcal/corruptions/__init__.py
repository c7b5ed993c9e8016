"""Corruptions: images in, the same images harder to recognise out.

``corruptions.names()`` lists them, ``corruptions.get("pixelate")`` and ``corruptions.Pixelate``
give the class. Those of rows and texts are in :mod:`shiftcal.corruptions.tabular` and
:mod:`shiftcal.corruptions.text`. Your own is a function or a subclass of :class:`Corruption`,
named as ``package.module:Class``, or an entry point of ``shiftcal.corruptions``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shiftcal.corruptions.base import Corruption
from shiftcal.registry import CORRUPTIONS

if TYPE_CHECKING:
    from shiftcal.corruptions import tabular, text
    from shiftcal.corruptions.images import Custom, Strengths, as_corruption, corrupt
    from shiftcal.corruptions.inputs import (
        CustomInputs,
        InputCorruption,
        as_input_corruption,
        corrupt_inputs,
    )

names = CORRUPTIONS.names
get = CORRUPTIONS.get

# Public name -> the module it is imported from on first use.
_WHERE = {
    "Custom": "images",
    "CustomInputs": "inputs",
    "InputCorruption": "inputs",
    "Strengths": "images",
    "as_corruption": "images",
    "as_input_corruption": "inputs",
    "corrupt": "images",
    "corrupt_inputs": "inputs",
}

__all__ = [
    "Corruption",
    "Custom",
    "CustomInputs",
    "InputCorruption",
    "Strengths",
    "as_corruption",
    "as_input_corruption",
    "corrupt",
    "corrupt_inputs",
    "get",
    "names",
    "tabular",
    "text",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        module = importlib.import_module(f"shiftcal.corruptions.{_WHERE[name]}")
        return globals().setdefault(name, getattr(module, name))
    if name in ("tabular", "text"):
        return importlib.import_module(f"shiftcal.corruptions.{name}")
    if name in CORRUPTIONS.classes:
        return get(CORRUPTIONS.classes[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *CORRUPTIONS.classes]
