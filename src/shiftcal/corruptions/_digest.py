"""A digest of what decides what a function or an object does, the same in every process."""

from __future__ import annotations

import builtins
import copyreg
import functools
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from shiftcal.corruptions._code_names import Import, names_of
from shiftcal.corruptions._releases import is_missing, release_of
from shiftcal.corruptions.base import Corruption

# Builtins that reach what no name in the code tells of.
_OPAQUE = {"eval", "exec", "globals", "__import__"}
# What Python notes about a class, and what says nothing of what it does.
_NOTES = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__"),
    *("__firstlineno__", "__static_attributes__", "__type_params__", "__annotate_func__"),
    *("__annotations_cache__", "__abstractmethods__", "_abc_impl", "__match_args__"),
    *("__orig_bases__", "__parameters__", "__dataclass_fields__", "__dataclass_params__"),
}
# Of an Albumentations transform: what is drawn or set anew for every image.
_DRAWN = {"seed", "params", "py_random", "random_generator", "processors"}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (type(None), bool, float, complex, str, type(Ellipsis), type(NotImplemented))


class _Unknown(Exception):
    """Something that cannot be digested."""


def digest_of(value: object) -> str | None:
    """SHA-256 in hex of all that decides what a value does; ``None`` if that cannot be told.

    Of a function: name, compiled code, defaults, attributes, closure, and the globals and modules
    its code names. Of an object: its class and what it holds. Of a class: its bases and all that
    is in it. Each by the same rules, and so on; what comes from a library, by name and version.
    The compiled code, not its source: the file may have been edited since it was imported.
    """
    try:
        return _Digest().of(value).hex()
    except (_Unknown, RecursionError):
        return None


class _Digest:
    def __init__(self) -> None:
        self._done: dict[object, bytes] = {}
        self._open: list[object] = []
        self._kept: list[object] = []  # so that no number of an object is given to another

    def of(self, value: object) -> bytes:
        kind = type(value)
        if kind in _PLAIN:
            return _hashed(kind.__name__, repr(value))
        if kind in (int, bytes):
            return _hashed(kind.__name__, f"{value:x}" if kind is int else value)  # type: ignore[arg-type]
        return self._once(id(value), value, lambda: self._compound(value))

    def _once(self, mark: object, value: object, make: Callable[[], bytes]) -> bytes:
        if mark in self._open:
            return _hashed("again", str(len(self._open) - self._open.index(mark)))
        if mark not in self._done:
            self._kept.append(value)
            self._open.append(mark)
            self._done[mark] = make()
            self._open.pop()
        return self._done[mark]

    def _compound(self, value: Any) -> bytes:
        make = _KINDS.get(type(value))
        if make is not None:
            return make(self, value)
        for kind, make in _FAMILIES:
            if isinstance(value, kind):
                return make(self, value)
        return _special(self, value) or self._object(value)

    def each(self, tag: str, values: Iterable[object]) -> bytes:
        return _hashed(tag, *(self.of(value) for value in values))

    def mapping(self, value: Mapping[Any, Any]) -> bytes:
        return self.each("dict", [item for pair in value.items() for item in pair])

    def attributes(self, value: Mapping[str, Any], *, but: Iterable[str] = ()) -> bytes:
        names = sorted(value.keys() - set(but))
        return _hashed("attributes", *(p for n in names for p in (n, self.of(value[n]))))

    def some(self, value: Iterable[object]) -> bytes:
        return _hashed("set", *sorted(self.of(item) for item in value))

    def array(self, value: np.ndarray[Any, Any] | np.generic) -> bytes:
        whole = np.asarray(value)
        about = f"{whole.dtype.descr if whole.dtype.names else whole.dtype.str} {whole.shape}"
        if whole.dtype.hasobject:
            return _hashed("objects", about, self.of(whole.tolist()))
        flat = np.ascontiguousarray(whole).reshape(-1).view(np.uint8)
        return _hashed("array", type(value).__name__, about, memoryview(flat))

    def code(self, value: CodeType) -> bytes:
        names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount)
        rest = (value.co_flags, value.co_exceptiontable, value.co_consts)
        return self.each("code", [value.co_name, value.co_code, *names, *counts, *rest])

    def function(self, value: FunctionType) -> bytes:
        code = value.__code__
        cells = [self._cell(cell) for cell in value.__closure__ or ()]
        parts = [
            self.code(code),
            self.of(value.__defaults__),
            self.of(value.__kwdefaults__),
            self.attributes(vars(value)),
            *cells,
        ]
        release = release_of(value.__globals__.get("__name__"))
        around = self._around(value) if release is None else release
        return _hashed("function", value.__qualname__, around, *parts)

    def _cell(self, cell: Any) -> bytes:
        try:
            return self.of(cell.cell_contents)
        except ValueError:
            return b"empty"

    def _around(self, value: FunctionType) -> bytes:
        """The globals and modules that the code of a function names."""
        names = names_of(value.__code__)
        found: list[str | bytes] = []
        for name in sorted(names.read):
            if name in value.__globals__:
                found += [name, self._named(value.__globals__[name], names.all)]
            elif name in _OPAQUE:
                raise _Unknown(name)
            elif not hasattr(builtins, name):
                found += [name, "undefined"]
        for wanted in sorted(names.imports):
            found += [repr(wanted), self._import(wanted, value.__globals__, names.all)]
        return _hashed("around", *found)

    def _import(self, wanted: Import, around: dict[str, Any], names: frozenset[str]) -> bytes:
        if wanted.level == 0:
            release = release_of(wanted.name)
            if release is not None or is_missing(wanted.name):
                return _hashed("module", wanted.name, release or "missing")
        try:
            found = __import__(wanted.name, around, None, wanted.wanted, wanted.level)
        except Exception as error:
            raise _Unknown(wanted.name) from error
        return self._named(found, names)

    def _named(self, value: object, names: frozenset[str]) -> bytes:
        """A value that code names; of a module, what the code may take from it."""
        if not isinstance(value, ModuleType) or release_of(value.__name__) is not None:
            return self.of(value)

        def make() -> bytes:
            taken = sorted(names & vars(value).keys())
            parts = [p for n in taken for p in (n, self._named(vars(value)[n], names))]
            return _hashed("own module", *parts)

        return self._once((id(value), names), value, make)

    def module(self, value: ModuleType) -> bytes:
        release = release_of(value.__name__)
        if release is None:
            raise _Unknown(value.__name__)
        return _hashed("module", value.__name__, release)

    def kind(self, value: type) -> bytes:
        release = release_of(value.__module__)
        if release is not None:
            return _hashed("class", value.__module__, value.__qualname__, release)
        bases = self.each("bases", [type(value), *value.__bases__])
        inside = self.attributes(vars(value), but=_NOTES)
        return _hashed("own class", value.__qualname__, bases, inside)

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
            raise _Unknown(kind.__name__) from error
        if isinstance(made, str):
            return _hashed("by name", made, self._origin(value), *parts)
        rest = [list(p) if i > 2 and hasattr(p, "__next__") else p for i, p in enumerate(made)]
        return _hashed("object", *parts, *(self.of(part) for part in rest))

    def _origin(self, value: Any) -> str | bytes:
        if hasattr(value, "__wrapped__"):
            return self.of(value.__wrapped__)
        module = getattr(value, "__module__", None) or type(value).__module__
        release = release_of(module)
        if release is None:
            raise _Unknown(repr(value))
        return f"{module} {release}"

    def corruption(self, value: Corruption) -> bytes:
        if value.identity is None:
            raise _Unknown(value.name)
        return _hashed("corruption", value.identity)

    def transform(self, value: Any) -> bytes:
        """An Albumentations transform: its class, its text, and its public attributes."""
        private = [name for name in vars(value) if name.startswith("_")]
        held = self.attributes(vars(value), but={*_DRAWN, *private})
        return _hashed("transform", self.of(type(value)), _ADDRESS.sub("", repr(value)), held)


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
        return _hashed("tensor", f"{value.dtype} {tuple(value.shape)}", memoryview(flat))
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
)


def _hashed(*parts: str | bytes | memoryview) -> bytes:
    """SHA-256 of parts, each with its length before it, so that none runs into the next."""
    made = hashlib.sha256()
    for part in parts:
        data = memoryview(part.encode() if isinstance(part, str) else part)
        made.update(data.nbytes.to_bytes(8, "little"))
        made.update(data)
    return made.digest()
