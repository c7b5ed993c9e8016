"""Things of the user's, named as ``package.module:attribute``."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shiftcal.errors import InputError

_OWN = Path(__file__).parent


def imported(kind: str, name: str, *, noun: str) -> Any:
    """What a name stands for.

    Args:
        kind: Kind of the model, for messages.
        name: ``package.module:attribute``; the latter may be an attribute of an attribute.
        noun: What the attribute should be, for messages.

    Raises:
        InputError: If there is no such thing, or importing it raises.
    """
    place, _, attribute = name.partition(":")
    if not place or not attribute:
        raise InputError(f"{kind}: must be followed by package.module:{noun}; got {name!r}.")
    try:
        found: Any = importlib.import_module(place)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # the module is the user's, and raises what it likes
        raise InputError(f"{kind}:{name} cannot be imported: {told(error)}.") from error
    return found


@contextmanager
def current_folder() -> Iterator[None]:
    """Modules in the current folder can be imported, and win over installed ones."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:  # what was imported may have changed the list
            sys.path.remove(folder)


def told(error: Exception) -> str:
    """What was raised, and where, if that is a line of the user's."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {str(error).rstrip('.')}"
    library = "importlib" in frame.filename or _OWN in Path(frame.filename).parents
    return said if library else f"{said}, in {Path(frame.filename).name}, line {frame.lineno}"
