"""What the code of a function reaches for by name."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

_READS_A_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}


class Import(NamedTuple):
    """An import inside a function, as ``__import__`` takes it."""

    name: str
    wanted: tuple[str, ...]
    level: int


class Names(NamedTuple):
    """What is named in a function and the functions within it.

    Attributes:
        read: Names of globals and builtins that are read.
        imports: Imports that are done when it runs.
        all: Every name, those of attributes too.
    """

    read: frozenset[str]
    imports: frozenset[Import]
    all: frozenset[str]


def names_of(code: CodeType) -> Names:
    """The names in some code."""
    read: set[str] = set()
    imports: set[Import] = set()
    every: set[str] = set()
    for part in _parts(code):
        every.update(part.co_names)
        steps = list(dis.get_instructions(part))
        for i, step in enumerate(steps):
            if step.opname in _READS_A_GLOBAL:
                read.add(step.argval)
            elif step.opname == "IMPORT_NAME":
                level, wanted = (before.argval for before in steps[i - 2 : i])
                imports.add(Import(step.argval, tuple(wanted or ()), level))
    return Names(frozenset(read), frozenset(imports), frozenset(every))


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
