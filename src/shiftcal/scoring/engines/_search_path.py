"""Where workers look for modules: wherever the process that has asked for them does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


def search_path() -> list[str]:
    """The folders this process finds modules in, and its current one.

    A model may come from the current folder though that is not on ``sys.path`` any more. It is
    the first if modules were imported from it, since they have won over installed ones here, and
    the last otherwise.
    """
    paths = [str(Path(path).absolute()) for path in sys.path]
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return paths
    if str(here) in paths:
        return paths
    used = any(_is_from(module, here) for module in list(sys.modules.values()))
    return [str(here), *paths] if used else [*paths, str(here)]


def extend_search_path(paths: Sequence[str]) -> None:
    """Look for modules there too; the first of them stays the first, the others come last.

    Args:
        paths: What :func:`search_path` gave elsewhere; folders that are not here are left out.
    """
    known = set(sys.path)
    new = [path for path in dict.fromkeys(paths) if path not in known and Path(path).exists()]
    if new and new[0] == paths[0]:
        sys.path.insert(0, new.pop(0))
    sys.path.extend(new)


def _is_from(module: ModuleType | None, folder: Path) -> bool:
    """Whether a module, or the package it is, lies in the folder itself."""
    name = getattr(module, "__name__", None)
    if not isinstance(name, str) or "." in name or name == "__main__":
        return False
    file = getattr(module, "__file__", None)
    places = getattr(module, "__path__", None) or ([file] if isinstance(file, str) else [])
    return any(Path(place).parent == folder for place in places)
