"""The options in the text of a model: whose they are, and what their values mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shiftcal._registry import suggest
from shiftcal.errors import InputError
from shiftcal.models.spec import Spec

_COMMON = ("batch_size", "memory_budget")
_TORCH = (*_COMMON, "output", "features_from", "channels_last", "device", "threads")
_MODULE = (*_TORCH, "precision", "min_agreement")
# Kind -> options of its adapter, and those with which the network itself is made.
TAKEN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "onnx": ((*_COMMON, "output", "output_name", "features_from", "threads"), ()),
    "torch": (_MODULE, ("weights",)),
    "python": ((*_COMMON, "output", "key", "raw"), ()),
    "torchscript": (_TORCH, ()),
    "export": ((*_COMMON, "output", "features_from", "device", "threads"), ()),
    "sklearn": ((*_COMMON, "scores"), ("trusted",)),
    "timm": (_MODULE, ("weights",)),
    "hf": (_MODULE, ("revision",)),
    "torchvision": (_MODULE, ("weights",)),
    "pytorchcv": (_MODULE, ("weights",)),
    "cifar-resnet": (_MODULE, ("weights", "n_classes")),
    "efficientnet-lite": (_MODULE, ("weights",)),
}


@dataclass(frozen=True)
class Options:
    """Options by whose they are.

    Attributes:
        adapter: Those of the adapter.
        preprocessing: Settings of the preprocessing.
        own: Those with which the network is made.
    """

    adapter: dict[str, Any]
    preprocessing: dict[str, Any]
    own: dict[str, Any]


def read_options(spec: Spec) -> Options:
    """Sort the options of a text and read their values.

    Raises:
        InputError: If one is unknown, naming those there are, or its value cannot be read.
    """
    adapter, own = TAKEN[spec.kind]
    read = Options({}, {}, {})
    for name, text in spec.options.items():
        if name in _PREPROCESSING:
            read.preprocessing[name] = _read(_PREPROCESSING[name], name, text)
        elif name in adapter:
            read.adapter[name] = _read(_ADAPTER[name], name, text)
        elif name in own:
            read.own[name] = _read(_whole, name, text) if name == "n_classes" else text
        elif spec.kind == "torch":
            read.own[name] = plain_value(text)
        else:
            known = [*own, *adapter, *_PREPROCESSING]
            raise InputError(
                f"a model of kind {spec.kind} has no option {name!r}. {suggest(name, known)} "
                f"Its options are {', '.join(known)}."
            )
    return read


def plain_value(text: str) -> int | float | bool | str:
    """A number or truth value if the text is one, else the text."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _read(reader: Callable[[str], Any], name: str, text: str) -> Any:
    try:
        return reader(text)
    except ValueError as error:
        raise InputError(f"{name} must be {error}; got {text!r}.") from None


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d+", text):
        raise ValueError("a whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _batch_size(text: str) -> int | None:
    return None if text == "auto" else _or("a whole number, or auto", _whole, text)


def _crop(text: str) -> int | None:
    return None if text == "none" else _or("a whole number, or none", _whole, text)


def _resize(text: str) -> int | tuple[int, ...] | None:
    if text == "none":
        return None
    sides = tuple(
        _or("one length, or HEIGHTxWIDTH, or none", _whole, side) for side in text.split("x")
    )
    return sides[0] if len(sides) == 1 else sides


def _numbers(text: str) -> tuple[float, ...]:
    rule = "one number, or three with commas between them"
    numbers = tuple(_or(rule, _number, number) for number in text.split(","))
    return numbers


def _or(rule: str, reader: Callable[[str], Any], text: str) -> Any:
    try:
        return reader(text)
    except ValueError:
        raise ValueError(rule) from None


_PREPROCESSING: dict[str, Callable[[str], Any]] = {
    "resize": _resize,
    "crop": _crop,
    "interpolation": str,
    "mean": _numbers,
    "std": _numbers,
    "layout": str,
    "dtype": str,
    "channels": _whole,
}
_ADAPTER: dict[str, Callable[[str], Any]] = {
    "batch_size": _batch_size,
    "memory_budget": _whole,
    "output": str,
    "output_name": str,
    "features_from": str,
    "precision": str,
    "min_agreement": _number,
    "device": str,
    "threads": _whole,
    "channels_last": _truth,
    "scores": str,
    "key": str,
    "raw": _truth,
}
