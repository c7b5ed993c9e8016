"""Estimators and their values as JSON nodes, and back by the types their classes declare."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from typing import Any, TypeAlias

import numpy as np

from shiftcal._estimator import Estimator
from shiftcal._registry import Registry
from shiftcal.errors import InputError

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

_REGISTRIES: dict[str, Registry[Any]] = {
    "map": Registry("shiftcal.maps", "calibration map", Estimator),
    "method": Registry("shiftcal.methods", "method", Estimator),
    "accuracy-estimator": Registry("shiftcal.estimates", "accuracy estimator", Estimator),
    "grouping": Registry("shiftcal.grouping", "calibration by groups", Estimator),
    "monitor": Registry("shiftcal.monitoring", "monitor", Estimator),
    "window": Registry("shiftcal.monitoring._windows", "window", Estimator),
}
# Arrays up to this size stand in the JSON itself, so that a file of temperatures is one file.
_INLINE = 64


def encode(value: Any, arrays: Arrays) -> Any:
    """``value`` as a JSON node; large arrays are put into ``arrays`` and referred to."""
    if isinstance(value, Estimator):
        return _encode_estimator(value, arrays)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays)
    if isinstance(value, (list, tuple)):
        return [encode(item, arrays) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item, arrays) for key, item in value.items()}
    return _encode_scalar(value.item() if isinstance(value, np.generic) else value)


def _encode_scalar(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}  # JSON has no word for it
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InputError(f"a setting of type {type(value).__name__} cannot be saved: {value!r}.")


def _encode_estimator(estimator: Estimator, arrays: Arrays) -> dict[str, Any]:
    fitted = {
        name: encode(getattr(estimator, name), arrays)
        for name in estimator.fitted_attributes()
        if hasattr(estimator, name)
    }
    return {
        "kind": estimator.kind,
        "name": estimator.name(),
        "settings": encode(estimator.get_params(deep=False), arrays),
        "fitted": fitted,
    }


def _encode_array(array: np.ndarray[Any, Any], arrays: Arrays) -> dict[str, Any]:
    if array.size > _INLINE:
        key = str(len(arrays))
        arrays[key] = array
        return {"array": key}
    values = [_encode_scalar(item) for item in array.ravel().tolist()]
    return {"dtype": array.dtype.str, "shape": list(array.shape), "values": values}


def decode_estimator(node: dict[str, Any], arrays: Arrays) -> Estimator:
    """The estimator that ``node`` stands for."""
    if node["kind"] not in _REGISTRIES:
        raise InputError(f"it holds an object of unknown kind {node['kind']!r}")
    cls = _REGISTRIES[node["kind"]].get(node["name"])
    settings = {name: _decode_setting(item, arrays) for name, item in node["settings"].items()}
    estimator: Estimator = cls(**settings)
    declared = cls.fitted_attributes()
    if unknown := set(node["fitted"]) - set(declared):
        raise InputError(f"{node['name']} has no attribute {sorted(unknown)[0]!r}")
    if node["fitted"] and (missing := set(declared) - set(node["fitted"])):
        raise InputError(f"{node['name']} lacks its attribute {sorted(missing)[0]!r}")
    for name, item in node["fitted"].items():
        setattr(estimator, name, _decode(item, declared[name], arrays))
    estimator.after_load()
    return estimator


def _decode_setting(node: Any, arrays: Arrays) -> Any:
    if isinstance(node, dict):
        return decode_estimator(node, arrays) if "kind" in node else float(node["float"])
    if isinstance(node, list):
        return tuple(_decode_setting(item, arrays) for item in node)
    return node


def decode(node: Any, hint: Any) -> Any:
    """The value of type ``hint`` that ``node`` stands for, if it has no arrays beside the JSON.

    Args:
        node: What :func:`encode` gave, or JSON by anybody.
        hint: A type as estimators declare them, ``Any`` for plain JSON values.

    Raises:
        InputError: If it is of another type. Nodes of another shape raise ``KeyError``,
            ``TypeError``, ``ValueError`` or ``AttributeError``.
    """
    return _decode(node, hint, {})


def _decode(node: Any, hint: Any, arrays: Arrays) -> Any:
    """The value of type ``hint`` that ``node`` stands for; anything else is refused."""
    if hint is Any:
        return node
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (a for a in args if a is not type(None))
        return None if node is None else _decode(node, inner, arrays)
    if origin is typing.Literal:
        return _expect(node, node in args, hint)
    if origin is tuple:
        items = _expect(node, isinstance(node, list), hint)
        return tuple(_decode(item, args[0], arrays) for item in items)
    if origin is dict:
        items = _expect(node, isinstance(node, dict), hint).items()
        return {key: _decode(item, args[1], arrays) for key, item in items}
    if origin is np.ndarray:
        return _decode_array(node, arrays)
    return _decode_plain(node, hint, arrays)


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode_plain(node: Any, hint: Any, arrays: Arrays) -> Any:
    if dataclasses.is_dataclass(hint):
        hints = _hints(hint)  # type: ignore[arg-type]
        fields = {name: _decode(item, hints[name], arrays) for name, item in node.items()}
        return hint(**fields)  # type: ignore[operator]
    if issubclass(hint, Estimator):
        estimator = decode_estimator(node, arrays)
        return _expect(estimator, isinstance(estimator, hint), hint)
    if hint is float:
        value = float(node["float"]) if isinstance(node, dict) else node
        return float(_expect(value, type(value) in (int, float), hint))
    return _expect(node, type(node) is hint, hint)


def _decode_array(node: dict[str, Any], arrays: Arrays) -> np.ndarray[Any, Any]:
    if "array" in node:
        return arrays[node["array"]]
    dtype = np.dtype(node["dtype"])
    _expect(node["dtype"], dtype.kind in "fiub", "a number type")
    values = [float(v["float"]) if isinstance(v, dict) else v for v in node["values"]]
    return np.array(values, dtype=dtype).reshape(node["shape"])


def _expect(value: Any, good: bool, hint: Any) -> Any:
    if not good:
        raise InputError(f"it holds {value!r} where {hint} belongs")
    return value
