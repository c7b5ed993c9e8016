"""Fitted estimators as versioned JSON, with large arrays in a safetensors file alongside."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import os
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from shiftcal.errors import FileError, InputError, NotFittedError
from shiftcal.files import (
    atomic_write,
    file_to_write,
    link_followed,
    parsing,
    read_document,
    write_document,
)
from shiftcal.registry import (
    ESTIMATORS,
    GROUPINGS,
    MAPS,
    METHODS,
    MONITORS,
    WINDOWS,
    Registry,
    is_own,
)

_NUMBERS = (float, np.ndarray)
# Ranges that learned numbers have.
FINITE = (-sys.float_info.max, sys.float_info.max)
POSITIVE = (sys.float_info.min, sys.float_info.max)
SHARE = (0.0, 1.0)
NOT_NEGATIVE = (0.0, sys.float_info.max)
POSITIVE_SHARE = (sys.float_info.min, 1.0)


class Estimator(BaseEstimator):
    """A scikit-learn estimator whose fitted attributes are declared in the class body.

    Settings are keyword arguments of ``__init__`` and nothing else happens there. What is learnt
    ends in ``_`` and is annotated in the class, ``temperature_: float``; those annotations are the
    schema of a saved file (:mod:`shiftcal.persistence`), so nothing has to be said twice.

    Attributes:
        kind: What it is: a map, a method.
        name: What it is called in tables and messages, and if it is built-in, on the command line
            and in saved files: small letters, digits and ``-``.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    # Smallest and largest value of learned numbers; those not named here must be finite.
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):  # never that of another class; messages need some name
            cls.name = cls.__name__

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def fitted_attributes(cls) -> dict[str, Any]:
        """Name and type of every attribute that ``fit`` and ``adapt`` set."""
        hints = typing.get_type_hints(cls)
        return {name: hint for name, hint in hints.items() if name.endswith("_")}

    def after_load(self) -> None:
        """Reject what a file gave, each part of its type, if a value cannot have been learned.

        A subclass also checks that its parts fit together.
        """
        for name in self.fitted_attributes():
            value = getattr(self, name, None)
            if value is None or not (isinstance(value, _NUMBERS) or name in self.ranges):
                continue
            low, high = self.ranges.get(name, FINITE)
            numbers = np.asarray(value, dtype=np.float64)
            if not ((low <= numbers) & (numbers <= high)).all():  # nor is nan
                raise InputError(
                    f"its {name} must be between {low:.6g} and {high:.6g}; got {value!r:.80}"
                )

    def _require_fitted(self) -> None:
        if not hasattr(self, "n_classes_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit before using it."
            )


Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

_REGISTRIES: dict[str, Registry] = {
    "map": MAPS,
    "method": METHODS,
    "accuracy-estimator": ESTIMATORS,
    "grouping": GROUPINGS,
    "monitor": MONITORS,
    "window": WINDOWS,
}
# Settings in which the name of another estimator can stand, and where that is looked up.
_NAMING = {"map": MAPS, "method": METHODS, "estimator": ESTIMATORS}
# Arrays up to this size stand in the JSON itself, so that a file of temperatures is one file.
_INLINE = 64


def encode(value: Any, arrays: Arrays) -> Any:
    """``value`` as a JSON node; large arrays are put into ``arrays`` and referred to."""
    if isinstance(value, Estimator):
        return _encode_estimator(value, arrays)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray) and value.size > _INLINE:
        key = str(len(arrays))
        arrays[key] = value
        return {"array": key}
    if isinstance(value, np.ndarray):
        values = [encode(item, arrays) for item in value.ravel().tolist()]
        return {"dtype": value.dtype.str, "shape": list(value.shape), "values": values}
    if isinstance(value, (list, tuple)):
        return [encode(item, arrays) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item, arrays) for key, item in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}  # JSON has no word for it
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InputError(f"a value of type {type(value).__name__} cannot be saved: {value!r}.")


def _encode_estimator(estimator: Estimator, arrays: Arrays) -> dict[str, Any]:
    settings = estimator.get_params(deep=False)
    for name, value in settings.items():
        if name in _NAMING and is_own(value):
            registry = _NAMING[name]
            registry.saved_name(registry.get(value))
    declared = estimator.fitted_attributes()
    for name, value in vars(estimator).items():
        if name.endswith("_") and not name.startswith("_") and name not in declared:
            raise InputError(
                f"{type(estimator).__name__} cannot be saved: the file would lose its attribute "
                f"{name}. Put this line into the class: {name}: {type(value).__name__}"
            )
    fitted = {
        name: encode(getattr(estimator, name), arrays)
        for name in declared
        if hasattr(estimator, name)
    }
    return {
        "kind": estimator.kind,
        "name": _REGISTRIES[estimator.kind].saved_name(type(estimator)),
        "settings": encode(settings, arrays),
        "fitted": fitted,
    }


def decode_estimator(node: dict[str, Any], arrays: Arrays) -> Estimator:
    """The estimator that ``node`` stands for."""
    if node["kind"] not in _REGISTRIES:
        raise InputError(f"it holds an object of unknown kind {node['kind']!r}")
    cls = _REGISTRIES[node["kind"]].saved(node["name"])
    settings = {name: _decode_setting(item, arrays) for name, item in node["settings"].items()}
    for name, value in settings.items():
        if name in _NAMING and is_own(value):  # a later fit imports what it names
            _NAMING[name].saved(value)
    estimator: Estimator = cls(**settings)
    declared = cls.fitted_attributes()
    if unknown := set(node["fitted"]) - set(declared):
        raise InputError(f"{node['name']} has no attribute {sorted(unknown)[0]!r}")
    if node["fitted"] and (missing := set(declared) - set(node["fitted"])):
        raise InputError(f"{node['name']} lacks its attribute {sorted(missing)[0]!r}")
    for name, item in node["fitted"].items():
        setattr(estimator, name, decode(item, declared[name], arrays))
    estimator.after_load()
    return estimator


def _decode_setting(node: Any, arrays: Arrays) -> Any:
    if isinstance(node, dict):
        return decode_estimator(node, arrays) if "kind" in node else float(node["float"])
    if isinstance(node, list):
        return tuple(_decode_setting(item, arrays) for item in node)
    return node


def decode(node: Any, hint: Any, arrays: Arrays | None = None) -> Any:
    """The value of type ``hint`` that ``node`` stands for.

    Args:
        node: What :func:`encode` gave, or JSON by anybody.
        hint: A type as estimators declare them, ``Any`` for plain JSON values.
        arrays: Large arrays by the names that nodes refer to; default: there are none.

    Raises:
        InputError: If it is of another type. Nodes of another shape raise ``KeyError``,
            ``TypeError``, ``ValueError`` or ``AttributeError``.
    """
    arrays = {} if arrays is None else arrays
    if hint is Any:
        return node
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (a for a in args if a is not type(None))
        return None if node is None else decode(node, inner, arrays)
    if origin is typing.Literal:
        return _expect(node, node in args, hint)
    if origin is tuple:
        items = _expect(node, isinstance(node, list), hint)
        return tuple(decode(item, args[0], arrays) for item in items)
    if origin is dict:
        items = _expect(node, isinstance(node, dict), hint).items()
        return {key: decode(item, args[1], arrays) for key, item in items}
    if origin is np.ndarray:
        return _decode_array(node, arrays)
    if dataclasses.is_dataclass(hint):
        hints = _hints(hint)  # type: ignore[arg-type]
        fields = {name: decode(item, hints[name], arrays) for name, item in node.items()}
        return hint(**fields)  # type: ignore[operator]
    if issubclass(hint, Estimator):
        estimator = decode_estimator(node, arrays)
        return _expect(estimator, isinstance(estimator, hint), hint)
    if hint is float:
        value = float(node["float"]) if isinstance(node, dict) else node
        return float(_expect(value, type(value) in (int, float), hint))
    return _expect(node, type(node) is hint, hint)


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


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


FORMAT = "shiftcal-estimator"
VERSION = 1
_KIND = "a saved shiftcal method"
_FIX = "Take it from a backup, or write it again with method.save(path) or `shiftcal fit`."


def save(estimator: Estimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to ``path``, whole or not at all.

    Arrays of more than 64 numbers go to ``<stem>.<digest>.safetensors`` in the same folder. The
    name holds the digest of the content, so replacing a saved method never leaves the old JSON
    pointing at new arrays.
    """
    target = link_followed(file_to_write(path))
    arrays: Arrays = {}
    content = {"object": encode(estimator, arrays), "arrays": _save_arrays(arrays, target)}
    before = _named_arrays(target)
    now = content["arrays"] and target.with_name(content["arrays"]["file"])
    try:
        write_document(target, content, format=FORMAT, version=VERSION, indent=1)
    except BaseException:
        if now is not None and now != before:
            now.unlink(missing_ok=True)
        raise
    if before is not None and before != now:
        before.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator back.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    source = Path(path)
    with parsing(source, _KIND, fix=_FIX):
        document = _read(source)
        return decode_estimator(document["object"], _read_arrays(document["arrays"], source))


def _read(source: Path) -> dict[str, Any]:
    return read_document(source, _KIND, format=FORMAT, version=VERSION, fix=_FIX)


def _named_arrays(target: Path) -> Path | None:
    """The arrays file of the saved method that ``target`` is about to replace."""
    try:
        name = _read(target)["arrays"]["file"]
    except (FileError, KeyError, TypeError):
        return None
    return target.with_name(name) if _is_sidecar(name, target) else None


def _is_sidecar(name: object, target: Path) -> bool:
    """Whether ``name`` is one that :func:`save` would have given, and so in the same folder."""
    return (
        isinstance(name, str)
        and Path(name).name == name
        and name.startswith(f"{target.stem}.")
        and name.endswith(".safetensors")
    )


def _save_arrays(arrays: Arrays, target: Path) -> dict[str, str] | None:
    if not arrays:
        return None
    from safetensors.numpy import save as to_bytes

    content = to_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    digest = hashlib.sha256(content).hexdigest()
    name = f"{target.stem}.{digest[:12]}.safetensors"
    with atomic_write(target.with_name(name)) as temporary:
        temporary.write_bytes(content)
    return {"file": name, "sha256": digest}


def _read_arrays(entry: Any, source: Path) -> Arrays:
    """The arrays of a document, from the file that it names."""
    if entry is None:
        return {}
    from safetensors.numpy import load as from_bytes

    # A link to the document need not have one to the arrays next to it.
    places = [place for place in (source, source.resolve()) if _is_sidecar(entry["file"], place)]
    if not places:
        raise InputError(f"its arrays file {entry['file']!r} must lie next to it under its name")
    files = [place.with_name(entry["file"]) for place in places]
    file = next((file for file in files if file.exists()), files[0])
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"its arrays file {file} could not be read ({error.strerror or error}); the two files "
            "belong together"
        ) from error
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise InputError(f"its arrays file {file} is damaged or belongs to another method")
    return from_bytes(content)
