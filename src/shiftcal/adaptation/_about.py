"""``adapt.json``: what a finished run is, and by what another one is noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.adaptation._divergence_note import told_of
from shiftcal.adaptation.training.identity import differences, plain_json
from shiftcal.errors import FileError

FILE, FORMAT, VERSION = "adapt.json", "shiftcal-adapted", 1
# What may be in the folder of a run that is not finished.
BEGUN = frozenset({"training", "features"})


def read_about(folder: Path) -> dict[str, Any]:
    """What a finished run says of itself.

    Raises:
        FileError: If there is none, or it is damaged or from a newer version.
    """
    file = folder / FILE
    try:
        document = json.loads(file.read_text("utf-8"))
    except FileNotFoundError as error:
        unfinished = any((folder / name).exists() for name in BEGUN)
        what = told_of(folder) if unfinished else f"holds no run: there is no {FILE} in it."
        raise FileError(f"{folder} {what}") from error
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{file} is damaged: not JSON ({error}). Remove the folder, and run again."
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileError(f"{file} does not describe a run: it has no format {FORMAT!r}.")
    written = document.get("version")
    if not isinstance(written, int) or written > VERSION:
        raise FileError(
            f"{file} has format version {written!r}, written by {document.get('written_by')}; this "
            f"is shiftcal {version('shiftcal')}, which reads up to version {VERSION}. Upgrade "
            "shiftcal to read it."
        )
    return document


def write_about(folder: Path, document: Mapping[str, Any], *, durable: bool) -> None:
    """Say that a run is finished, and what it is."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"shiftcal {version('shiftcal')}",
    }
    text = json.dumps({**head, **document}, indent=1, ensure_ascii=False)
    with atomic_write(folder / FILE, durable=durable) as temporary:
        temporary.write_text(f"{text}\n", "utf-8")


def check_free(folder: Path) -> None:
    """Refuse a folder that holds something else than a run, finished or begun.

    Raises:
        FileError: Naming what it holds.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        what = "is a file" if folder.is_file() else f"cannot be read ({error.strerror or error})"
        raise FileError(f"{folder} {what}. Name a folder for the run.") from error
    if names and not ({FILE} | BEGUN) & set(names):
        raise FileError(
            f"{folder} holds {names[0]!r} and is no run. Name a new folder for the run."
        )


def refuse_other(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to take one run for another.

    Args:
        folder: Where the one is.
        before: What decided it.
        now: What decides the one that is wanted.

    Raises:
        FileError: Naming what differs.
    """
    # Another trainer has other options and settings, too: these say nothing more.
    trainers = [{"trainer": each["training"]["trainer"]} for each in (before, now)]
    differ = differences(*trainers) or differences(before, plain_json(now))
    if differ:
        raise FileError(
            f"{folder} holds another run: {differ}. Give the same, or name a new folder."
        )
