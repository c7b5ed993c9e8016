"""From ``--corruption``, ``--severity`` and ``--frost-photos`` to corruptions."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shiftcal.errors import InputError, ShiftcalError

# How :class:`shiftcal.corruptions.Custom` marks what a function of the user's raised.
_RAISED_BY = "raised by the corruption"
_RANGE = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")


def choose_corruptions(asked: Sequence[str], frost_photos: Path | None) -> list[Any]:
    """The corruptions that the names stand for, each once.

    Args:
        asked: Names, ``all``, or ``module:function``; each may be several with commas between.
        frost_photos: Folder of photographs for frost.

    Raises:
        InputError: If there is none of that name, or photographs are given and no frost.
    """
    from shiftcal import corruptions

    said = [name.strip() for each in asked for name in each.split(",")]
    names = [name for each in said for name in (corruptions.names() if each == "all" else [each])]
    made = [corruptions.as_corruption(_own(name)) for name in dict.fromkeys(names)]
    if frost_photos is None:
        return made
    if "frost" not in (corruption.name for corruption in made):
        raise InputError("--frost-photos goes with --corruption frost.")
    frost = corruptions.get("frost")(photos=frost_photos)
    return [frost if corruption.name == "frost" else corruption for corruption in made]


def parse_severities(text: str) -> list[int] | None:
    """The severities that ``--severity`` names; ``None`` for all."""
    if text == "all":
        return None
    chosen: set[int] = set()
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise InputError(
                f"--severity must be a number, several as 1,3 or 2-4, or all; got {text!r}."
            )
        low, high = found.groups()
        chosen.update(range(int(low), int(high or low) + 1))
    if not chosen:
        raise InputError(f"--severity {text!r} names none. Put the smaller number first.")
    return sorted(chosen)


def _own(name: str) -> Any:
    """A function named as ``module:function``; any other name as it is."""
    module, colon, attribute = name.partition(":")
    if not colon:
        return name
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # the module is the user's, and raises what it likes
        raise InputError(f"--corruption {name!r} cannot be imported: {_where(error)}.") from error
    finally:
        sys.path.pop(0)
    return found


@contextmanager
def blaming_functions() -> Iterator[None]:
    """Tell what a user's own function raised as a fault of the input, which it is."""
    try:
        yield
    except ShiftcalError:
        raise
    except Exception as error:
        notes = [note for note in getattr(error, "__notes__", ()) if note.startswith(_RAISED_BY)]
        if not notes:
            raise
        raise InputError(f"{_where(error)} ({notes[0]}).") from error


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {str(error).rstrip('.')}"
    library = "importlib" in frame.filename or frame.filename == __file__
    return said if library else f"{said}, in {Path(frame.filename).name}, line {frame.lineno}"
