"""Fitted estimators as versioned JSON files; the annotations of a class are its schema."""

from __future__ import annotations

import base64
import copy
import dataclasses
import functools
import inspect
import math
import os
import types
import typing
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftcal import errors
from shiftcal.errors import InputError
from shiftcal.files import parsing, read_document, write_document
from shiftcal.registry import ESTIMATORS, MAPS, METHODS, PARTS, Registry, is_own


class Estimator:
    """An estimator by scikit-learn's rules whose fitted attributes are declared in the class body.

    Parameters, ``clone`` and tags are scikit-learn's. It is no subclass of ``BaseEstimator``,
    because importing that takes longer than most fits.

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

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):  # never that of another class; messages need some name
            cls.name = cls.__name__

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name; with ``deep`` also those of estimators among them, ``map__t_range``."""
        found = {name: getattr(self, name) for name in _settings(type(self))}
        for name, value in list(found.items()) if deep else ():
            if hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change settings, or with ``map__t_range`` one of an estimator among them."""
        known = self.get_params(deep=False)
        for name in sorted(params):  # an estimator before its own settings
            first, _, inner = name.partition("__")
            if first not in known:
                raise InputError(
                    f"{type(self).__name__} has no setting {first!r}; it has {', '.join(known)}."
                )
            if inner:
                getattr(self, first).set_params(**{inner: params[name]})
            else:
                setattr(self, name, params[name])
        return self

    def __repr__(self) -> str:
        defaults = _settings(type(self))
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

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
        """Check that the parts of a file fit together; a subclass says how."""

    def _require_fitted(self) -> None:
        if not hasattr(self, "n_classes_"):
            raise errors.NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit before using it."
            )


def _settings(cls: type[Estimator]) -> dict[str, Any]:
    """Names and defaults of the arguments of ``__init__``, sorted as scikit-learn sorts them."""
    parameters = inspect.signature(cls).parameters
    return {name: parameters[name].default for name in sorted(parameters)}


E = TypeVar("E")


def clone(estimator: E) -> E:
    """A new unfitted estimator with the same settings, as ``sklearn.base.clone`` makes it."""
    if not isinstance(estimator, Estimator):
        return copy.deepcopy(estimator)
    settings = estimator.get_params(deep=False)
    return type(estimator)(**{name: clone(value) for name, value in settings.items()})


Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

_REGISTRIES: dict[str, Registry] = {
    "map": MAPS,
    "method": METHODS,
    "accuracy-estimator": ESTIMATORS,
    "grouping": PARTS,
    "monitor": PARTS,
    "window": PARTS,
}
# Settings in which the name of another estimator can stand, and where that is looked up.
_NAMING = {"map": MAPS, "method": METHODS, "estimator": ESTIMATORS}
# Arrays up to this size stand in the JSON itself, so that a file of temperatures is one file.
_INLINE = 64
# The origin of an annotated array: from Python 3.12 on, numpy 2.5 uses its own alias type.
ARRAY = typing.get_origin(NDArray[Any])


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
    if origin is ARRAY:
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

    Arrays of more than 64 numbers are in the field ``arrays``, as base64 of safetensors.
    """
    from safetensors.numpy import save as to_bytes

    arrays: Arrays = {}
    node = encode(estimator, arrays)
    packed = to_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    content = {"object": node, "arrays": base64.b64encode(packed).decode() if arrays else None}
    write_document(Path(path), content, format=FORMAT, version=VERSION, indent=1)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator back.

    Raises:
        FileError: If the file is missing, damaged, of another kind, or from a newer version.
    """
    from safetensors.numpy import load as from_bytes

    source = Path(path)
    with parsing(source, _KIND, fix=_FIX):
        document = read_document(source, _KIND, format=FORMAT, version=VERSION, fix=_FIX)
        packed = document["arrays"]
        arrays = {} if packed is None else from_bytes(base64.b64decode(packed, validate=True))
        return decode_estimator(document["object"], arrays)
