"""Digests of functions, modules and classes, by what their code does and refers to."""

from __future__ import annotations

import builtins
from types import CodeType, FunctionType, ModuleType
from typing import Any

from shiftcal.corruptions._code_names import Import, names_of
from shiftcal.corruptions._releases import is_missing, release_of
from shiftcal.corruptions._walk import Unknown, Walk, hashed

# Builtins that reach what no name in the code tells of.
_OPAQUE = {"eval", "exec", "globals", "__import__"}
# What Python notes about a class, and what says nothing of what it does.
_NOTES = {
    "__abstractmethods__",
    "__annotate_func__",
    "__annotations__",
    "__annotations_cache__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__match_args__",
    "__module__",
    "__orig_bases__",
    "__parameters__",
    "__qualname__",
    "__slotnames__",
    "__static_attributes__",
    "__type_params__",
    "__weakref__",
    "_abc_impl",
}


class CodeWalk(Walk):
    """Goes through code."""

    def code(self, value: CodeType) -> bytes:
        """Compiled code without the places of its lines in a file."""
        names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount)
        rest = (value.co_flags, value.co_exceptiontable, value.co_consts)
        return self.each("code", [value.co_name, value.co_code, *names, *counts, *rest])

    def function(self, value: FunctionType) -> bytes:
        """Code and what it works with; what is around it only if it is not a library's."""
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
        return hashed("function", value.__qualname__, around, *parts)

    def _cell(self, cell: Any) -> bytes:
        try:
            held = cell.cell_contents
        except ValueError:
            return b"empty"
        return self.of(held)

    def _around(self, value: FunctionType) -> bytes:
        """The globals and modules that the code of a function names."""
        names = names_of(value.__code__)
        found: list[str | bytes] = []
        for name in sorted(names.read):
            if name in value.__globals__:
                found += [name, self._named(value.__globals__[name], names.all)]
            elif name in _OPAQUE:
                raise Unknown(name)
            elif not hasattr(builtins, name):
                found += [name, "undefined"]
        for wanted in sorted(names.imports):
            found += [repr(wanted), self._import(wanted, value.__globals__, names.all)]
        return hashed("around", *found)

    def _import(self, wanted: Import, around: dict[str, Any], names: frozenset[str]) -> bytes:
        if wanted.level == 0:
            release = release_of(wanted.name)
            if release is not None or is_missing(wanted.name):
                return hashed("module", wanted.name, release or "missing")
        try:
            found = __import__(wanted.name, around, None, wanted.wanted, wanted.level)
        except Exception as error:
            raise Unknown(wanted.name) from error
        return self._named(found, names)

    def _named(self, value: object, names: frozenset[str]) -> bytes:
        """A value that code names; of a module, what the code may take from it."""
        if not isinstance(value, ModuleType) or release_of(value.__name__) is not None:
            return self.of(value)

        def make() -> bytes:
            taken = sorted(names & vars(value).keys())
            parts = [p for n in taken for p in (n, self._named(vars(value)[n], names))]
            return hashed("own module", *parts)

        return self.once((id(value), names), value, make)

    def module(self, value: ModuleType) -> bytes:
        """A library's module; of one's own it is not known what is taken from it."""
        release = release_of(value.__name__)
        if release is None:
            raise Unknown(value.__name__)
        return hashed("module", value.__name__, release)

    def kind(self, value: type) -> bytes:
        """A class."""
        if not isinstance(value.__module__, str):  # some that are written in C
            raise Unknown(value.__qualname__)
        release = release_of(value.__module__)
        if release is not None:
            return hashed("class", value.__module__, value.__qualname__, release)
        bases = self.each("bases", [type(value), *value.__bases__])
        inside = self.attributes(vars(value), but=_NOTES)
        return hashed("own class", value.__qualname__, bases, inside)
