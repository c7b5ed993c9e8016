"""Corruptions: images in, the same images harder to recognise out.

``corruptions.names()`` lists them, ``corruptions.get("pixelate")`` and ``corruptions.Pixelate``
give the class. Those of rows and texts are in :mod:`shiftcal.corruptions.tabular` and
:mod:`shiftcal.corruptions.text`. Your own is a function or a subclass of :class:`Corruption`,
named as ``package.module:Class``, or an entry point of ``shiftcal.corruptions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shiftcal.corruptions.corruption import Corruption
from shiftcal.lazy import lazy
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

_get, _ = lazy(
    __name__,
    {
        "images": "Custom Strengths as_corruption corrupt",
        "inputs": "CustomInputs InputCorruption as_input_corruption corrupt_inputs",
    },
    modules="tabular text",
)


def __getattr__(name: str) -> Any:
    return get(CORRUPTIONS.classes[name]) if name in CORRUPTIONS.classes else _get(name)


def __dir__() -> list[str]:
    return [*__all__, *CORRUPTIONS.classes]
