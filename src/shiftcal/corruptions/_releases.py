"""Which code belongs to a release of somebody else's library, and which to the user."""

from __future__ import annotations

import functools
import importlib.util
import sys
from importlib import metadata
from pathlib import PurePath

_INSTALLED = {"site-packages", "dist-packages"}


def release_of(module: str | None) -> str | None:
    """Library and version a module comes from; ``None`` for the user's own code.

    A package that is installed for working on it lies elsewhere than others and counts as the
    user's own: its code changes while its version does not.
    """
    return _release((module or "builtins").partition(".")[0])


def is_missing(module: str) -> bool:
    """Whether there is no module of that name to be imported."""
    return module not in sys.modules and _spec(module.partition(".")[0]) is None


@functools.cache
def _release(top: str) -> str | None:
    if top in sys.stdlib_module_names:
        return f"Python {sys.version_info.major}.{sys.version_info.minor}"
    if top == "shiftcal":
        return f"shiftcal {metadata.version(top)}"
    spec = _spec(top)
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    if not any(_INSTALLED & set(PurePath(place).parts) for place in places if place):
        return None
    version = _version(top)
    return None if version is None else f"{top} {version}"


def _spec(top: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):  # a script has none
        return None


def _version(top: str) -> str | None:
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        # Imported by another name than it is installed by, as cv2 and PIL are.
        packages = sorted(_distributions().get(top, ()))
        return metadata.version(packages[0]) if packages else None


@functools.cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())
