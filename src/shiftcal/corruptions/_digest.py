"""A digest of what decides what a function or an object does, the same in every process."""

from __future__ import annotations

import copyreg
import functools
import random
import re
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from shiftcal.corruptions._code_walk import CodeWalk
from shiftcal.corruptions._releases import release_of
from shiftcal.corruptions._walk import Unknown, hashed
from shiftcal.corruptions.base import Corruption

# Of an Albumentations transform: what is drawn or set anew for every image.
_DRAWN = {"seed", "params", "py_random", "random_generator", "processors"}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def digest_of(value: object) -> str | None:
    """SHA-256 in hex of all that decides what a value does; ``None`` if that cannot be told.

    Of a function: name, compiled code, defaults, attributes, closure, and the globals and modules
    its code names. Of an object: its class and what it holds. Of a class: its bases and all that
    is in it. Each by the same rules, and so on; what comes from a library, by name and version.
    The compiled code, not its source: the file may have been edited since it was imported.
    """
    try:
        return _Digest().of(value).hex()
    except Exception:  # an object may do anything when it is looked at
        return None


class _Digest(CodeWalk):
    def compound(self, value: Any) -> bytes:
        make = _KINDS.get(type(value))
        if make is not None:
            return make(self, value)
        for kind, make in _FAMILIES:
            if isinstance(value, kind):
                return make(self, value)
        return _special(self, value) or self._object(value)

    def _object(self, value: Any) -> bytes:
        """An object as it would be pickled, and if its class is the user's, all it holds."""
        kind = type(value)
        parts = [self.of(kind)]
        if release_of(kind.__module__) is None:
            slots = [n for n in copyreg._slotnames(kind) if hasattr(value, n)]  # type: ignore[attr-defined]
            held = {**getattr(value, "__dict__", {}), **{n: getattr(value, n) for n in slots}}
            parts.append(self.attributes(held))
        try:
            known = copyreg.dispatch_table.get(kind)
            made: Any = value.__reduce_ex__(4) if known is None else known(value)
        except Exception as error:
            raise Unknown(kind.__name__) from error
        if isinstance(made, str):
            return hashed("by name", made, self._origin(value), *parts)
        rest = [list(p) if i > 2 and hasattr(p, "__next__") else p for i, p in enumerate(made)]
        return hashed("object", *parts, *(self.of(part) for part in rest))

    def _origin(self, value: Any) -> str | bytes:
        if hasattr(value, "__wrapped__"):
            return self.of(value.__wrapped__)
        module = getattr(value, "__module__", None) or type(value).__module__
        release = release_of(module)
        if release is None:
            raise Unknown(repr(value))
        return f"{module} {release}"

    def corruption(self, value: Corruption) -> bytes:
        if value.identity is None:
            raise Unknown(value.name)
        return hashed("corruption", value.identity)

    def generator(self, value: object) -> bytes:
        """What is drawn from a generator that is kept depends on all that was drawn before."""
        raise Unknown(type(value).__name__)

    def transform(self, value: Any) -> bytes:
        """An Albumentations transform: its class, its text, and its public attributes."""
        private = [name for name in vars(value) if name.startswith("_")]
        held = self.attributes(vars(value), but={*_DRAWN, *private})
        return hashed("transform", self.of(type(value)), _ADDRESS.sub("", repr(value)), held)


def _special(digest: _Digest, value: Any) -> bytes | None:
    """Objects of libraries that may not be installed, and whose pickles say too much."""
    tops = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    if "albumentations" in tops and hasattr(value, "set_random_seed"):
        return digest.transform(value)
    if "numba" in tops and hasattr(value, "py_func"):
        return digest.each("compiled", [type(value), value.py_func, value.targetoptions])
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        return hashed("tensor", f"{value.dtype} {tuple(value.shape)}", memoryview(flat))
    return None


_KINDS: dict[type, Callable[[_Digest, Any], bytes]] = {
    tuple: lambda digest, value: digest.each("tuple", value),
    list: lambda digest, value: digest.each("list", value),
    dict: _Digest.mapping,
    MappingProxyType: _Digest.mapping,
    set: _Digest.some,
    frozenset: _Digest.some,
    np.ndarray: _Digest.array,
    np.memmap: _Digest.array,
    CodeType: _Digest.code,
    FunctionType: _Digest.function,
    ModuleType: _Digest.module,
    MethodType: lambda digest, value: digest.each("method", [value.__self__, value.__func__]),
    property: lambda digest, value: digest.each("property", [value.fget, value.fset, value.fdel]),
    staticmethod: lambda digest, value: digest.each("static", [value.__func__]),
    classmethod: lambda digest, value: digest.each("of class", [value.__func__]),
    functools.cached_property: lambda digest, value: digest.each("cached", [value.func]),
}
_FAMILIES: tuple[tuple[type, Callable[[_Digest, Any], bytes]], ...] = (
    (type, _Digest.kind),
    (np.generic, _Digest.array),
    (Corruption, _Digest.corruption),
    (np.random.Generator, _Digest.generator),
    (np.random.RandomState, _Digest.generator),
    (random.Random, _Digest.generator),
)
