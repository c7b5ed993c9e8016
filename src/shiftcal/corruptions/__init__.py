"""Corruptions: images in, the same images harder to recognise out.

One file is one corruption, found by its file name: ``corruptions.names()`` lists them,
``corruptions.get("pixelate")`` and ``corruptions.Pixelate`` give the class. Those of rows and texts
are in :mod:`shiftcal.corruptions.tabular` and :mod:`shiftcal.corruptions.text`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shiftcal._registry import Registry
from shiftcal.corruptions.base import Corruption

if TYPE_CHECKING:
    from shiftcal.corruptions import tabular, text
    from shiftcal.corruptions._corrupt import corrupt
    from shiftcal.corruptions._corrupt_inputs import as_input_corruption, corrupt_inputs
    from shiftcal.corruptions._custom import Custom
    from shiftcal.corruptions._custom_inputs import CustomInputs
    from shiftcal.corruptions._input_corruption import InputCorruption
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
    "CustomInputs": "_custom_inputs",
    "InputCorruption": "_input_corruption",
    "Strengths": "_strengths",
    "as_corruption": "_resolve",
    "as_input_corruption": "_corrupt_inputs",
    "corrupt": "_corrupt",
    "corrupt_inputs": "_corrupt_inputs",
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
    by_class = {file.replace("_", " ").title().replace(" ", ""): file for file in names()}
    if name in by_class:
        return get(by_class[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(get(name).__name__ for name in names())]
