"""Code as text: whose it is, its source, and the names in it."""

from __future__ import annotations

import importlib.metadata
import inspect
import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any


def name_of(thing: Any) -> str:
    """Full name of a class, function or module, with the version of the package it is from.

    That of torch is not told: it is said with what computes.
    """
    own = getattr(thing, "__qualname__", thing.__name__)
    module = getattr(thing, "__module__", None)
    name = own if module is None else f"{module}.{own}"
    package = name.partition(".")[0]
    return name if package in ("torch", "builtins") or is_own(package) else _versioned(name)


@lru_cache(maxsize=1024)
def is_own(module: str | None) -> bool:
    """Whether a module is somebody's own code, and not of Python or an installed package.

    What is installed by reference to its folder, to be worked at, is own code.
    """
    package = str(module).partition(".")[0]
    if package == "builtins" or package in sys.stdlib_module_names - {"__main__"}:
        return False
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None:
        places = list(getattr(sys.modules.get(package), "__path__", ()))
        file = places[0] if places else None
    return file is None or not {"site-packages", "dist-packages"} & set(Path(file).parts)


@lru_cache(maxsize=4096)
def source_of(code: CodeType) -> str | None:
    """The source of a function, or ``None`` where there is none to read."""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return None


def bytecode_of(code: CodeType) -> str:
    """The instructions of a function as text, those of functions inside it included."""
    constants = [
        bytecode_of(one)
        if isinstance(one, CodeType)
        else sorted(map(repr, one))
        if isinstance(one, frozenset)
        else repr(one)
        for one in code.co_consts
    ]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


def named_in(code: CodeType) -> list[str]:
    """Every name that is no local variable, in the code and in functions inside it, sorted."""
    names = set(code.co_names)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            names.update(named_in(one))
    return sorted(names)


@lru_cache(maxsize=4096)
def _versioned(name: str) -> str:
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names:
        return name
    try:
        return f"{name} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        found = importlib.metadata.packages_distributions().get(package, [])
        versions = [importlib.metadata.version(one) for one in sorted(set(found))]
        return f"{name} {' '.join(versions)}"
