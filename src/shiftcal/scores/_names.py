"""Names found in a file that are almost the expected ones: a typing mistake must be noticed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from shiftcal.errors import FileError

# Shorter names have too many innocent neighbours: 'idx' is not a mistyped 'id'.
_SHORTEST = 5
_ALIKE = 0.8
_LISTED = 8


def is_near_miss(name: str, expected: str) -> bool:
    """Whether ``name`` is ``expected`` in other case or number, or with a letter or two wrong."""
    a, b = name.strip().casefold(), expected.casefold()
    if name == expected:
        return False
    if a.removesuffix("s") == b.removesuffix("s"):
        return True
    return (
        len(expected) >= _SHORTEST
        and difflib.SequenceMatcher(None, a, b, autojunk=False).ratio() >= _ALIKE
    )


def refuse_near_misses(path: Path, found: Iterable[str], expected: Sequence[str]) -> None:
    """Raise if a name that is absent seems to be there under a mistyped one.

    Raises:
        FileError: Naming both.
    """
    names = list(found)
    for wanted in expected:
        if wanted in names:
            continue
        for name in names:
            if name not in expected and is_near_miss(name, wanted):
                raise FileError(mistyped(path, name, wanted))


def mistyped(path: Path, name: str, wanted: str) -> str:
    """The message about one mistyped name."""
    return (
        f"{path} holds {name!r}, which is not read. Did you mean {wanted!r}? "
        "Rename it, or leave it out if it is something else."
    )


def listed(names: Sequence[str]) -> str:
    """The first few names, for a message about a file that lacks one."""
    shown = ", ".join(map(repr, names[:_LISTED]))
    if len(names) > _LISTED:
        return f"{shown} and {len(names) - _LISTED} more"
    return shown or "nothing"
