"""Plug-ins found by file name: one file in a package is one entry, nothing is listed by hand."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from shiftcal.errors import UnknownName

T = TypeVar("T")

# Files of a plug-in package that are not plug-ins themselves.
_NOT_PLUGINS = frozenset({"base"})


class Registry(Generic[T]):
    """The plug-ins of one package, by file name.

    Args:
        package: Dotted name of the package whose files are the entries.
        noun: What an entry is called in messages, such as ``"calibration map"``.
        base: What every entry must be: a subclass of this class. With ``None`` an
            entry is the function that carries the file's name.
        space: What stands between the words of a name.
    """

    def __init__(self, package: str, noun: str, base: type[T] | None, *, space: str = "-") -> None:
        self.package = package
        self.noun = noun
        self.base = base
        self.space = space

    def names(self) -> list[str]:
        """Every entry's name, sorted. Imports none of the entries."""
        return plugin_names(self.package, space=self.space)

    def get(self, name: str) -> Any:
        """The class (or function) called ``name``; ``-`` is ``_``, and capitals do not matter.

        Raises:
            UnknownName: With the nearest names there are.
        """
        known = self.names()
        wanted = name
        if isinstance(name, str):
            wanted = name.replace("_", self.space).replace("-", self.space).lower()
        if wanted not in known:
            raise UnknownName(f"no {self.noun} is called {name!r}. {suggest(wanted, known)}")
        file = wanted.replace(self.space, "_")
        module = importlib.import_module(f"{self.package}.{file}")
        if self.base is None:
            return getattr(module, file)
        return _the_class(module, self.base)


def plugin_names(package: str, *, space: str = "-") -> list[str]:
    """Names of the plug-ins in a package, sorted, which is not imported for it.

    Args:
        package: Its dotted name.
        space: What stands between the words of a name.
    """
    found = importlib.util.find_spec(package)
    assert found is not None, package
    return sorted(
        module.name.replace("_", space)
        for module in pkgutil.iter_modules(found.submodule_search_locations)
        if not (module.ispkg or module.name.startswith("_") or module.name in _NOT_PLUGINS)
    )


def _the_class(module: Any, base: type[T]) -> type[T]:
    """The one concrete subclass of ``base`` that ``module`` defines."""
    found = [
        item
        for item in vars(module).values()
        if inspect.isclass(item)
        and issubclass(item, base)
        and item.__module__ == module.__name__
        and not inspect.isabstract(item)
        and not item.__name__.startswith("_")
    ]
    assert len(found) == 1, f"{module.__name__} must define one public {base.__name__}: {found}"
    return found[0]


def suggest(wanted: object, known: Sequence[str]) -> str:
    """A sentence that points from a mistyped name to the ones that exist."""
    near = difflib.get_close_matches(str(wanted), known, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"There are: {', '.join(known)}."
