"""Packages whose public names are imported on first use."""

from __future__ import annotations

import importlib
import sys

# Type checkers know this name; importing typing for it would take longer than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy(
    package: str, names: Mapping[str, str], modules: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: Its ``__name__``.
        names: Module below the package -> the public names it has, with spaces between them.
        modules: Modules that are public themselves.
    """
    where = {name: module for module, some in names.items() for name in some.split()}

    def get(name: str) -> Any:
        if name in modules.split():
            return importlib.import_module(f"{package}.{name}")
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)  # looked up once
        return value

    return get, lambda: sorted(sys.modules[package].__all__)
