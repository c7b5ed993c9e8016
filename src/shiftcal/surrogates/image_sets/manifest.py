"""``corrupted.json``: how the images beside it were made, so that nothing is mixed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal._files import atomic_write
from shiftcal.corruptions._engine import GENERATOR
from shiftcal.corruptions._identity import lasting_identity
from shiftcal.errors import FileError
from shiftcal.surrogates.image_sets.job import Job

NAME = "corrupted.json"
FORMAT = "shiftcal-corrupted-images"
VERSION = 1


@contextmanager
def described(job: Job, **settings: Any) -> Iterator[None]:
    """Write or check the description of the target, and keep other processes out of it.

    Args:
        job: What is to be made.
        **settings: What must be the same for files to stand side by side.

    Raises:
        FileError: If the target holds something else, was made otherwise, or is being written.
    """
    try:
        job.target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{job.target} could not be made: {error.strerror or error}.") from error
    made = _read(job.target)
    with _alone(job.target):
        made = _read(job.target)  # another process may have been quicker
        wanted = {"generator": GENERATOR, "seed": job.seed, "table": job.table, **settings}
        document = made or {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"shiftcal {version('shiftcal')}",
            **wanted,
            "corruptions": {},
        }
        _check_same(job.target, document, wanted)
        known: dict[str, str] = document["corruptions"]
        for corruption in job.corruptions:
            ours = lasting_identity(corruption)
            if known.setdefault(corruption.name, ours) != ours:
                raise FileError(
                    f"{job.target} already has {known[corruption.name]}, and this is {ours}. Name "
                    "another folder."
                )
        document["corruptions"] = dict(sorted(known.items()))
        text = json.dumps(document, indent=1) + "\n"
        file = job.target / NAME
        if made is None or file.read_text("utf-8") != text:
            with atomic_write(file) as temporary:
                temporary.write_text(text, "utf-8")
        try:
            yield
        except BaseException:
            if made is None and not any(_finished(job.target)):
                file.unlink()  # nothing came of it: the folder is free for another source
            raise


def _finished(target: Path) -> Iterator[Path]:
    return (entry for entry in target.rglob("*") if entry.is_file() and entry.name != NAME)


def _read(target: Path) -> dict[str, Any] | None:
    """What an earlier call wrote; ``None`` if the folder is empty."""
    file = target / NAME
    if not file.exists():
        others = [entry.name for entry in target.iterdir() if not _is_empty(entry)]
        if others:
            raise FileError(
                f"{target} holds {others[0]!r} and was not made by shiftcal corrupt. Name a new "
                "folder for the result."
            )
        return None
    try:
        document = json.loads(file.read_text("utf-8"))
        sound = (
            document["format"] == FORMAT
            and isinstance(document["corruptions"], dict)
            and int(document["version"]) <= VERSION
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"{file} is damaged ({error}). Name a new folder.") from error
    if not sound:
        raise FileError(f"{file} is not one that this version can go on with. Name a new folder.")
    found: dict[str, Any] = document
    return found


def _is_empty(entry: Path) -> bool:
    """Whether it is a folder, or folders in it, without any file."""
    return entry.is_dir() and not any(path.is_file() for path in entry.rglob("*"))


def _check_same(target: Path, made: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, value in json.loads(json.dumps(wanted)).items():
        if made.get(name) != value:
            what = "another source" if name == "source" else f"{name} {made.get(name)!r}"
            now = "" if name == "source" else f", now it is {value!r}"
            raise FileError(
                f"{target} was begun with {what}{now}. Give the same settings to go on with it, "
                "or name a new folder."
            )


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the folder; the system lets go of it if the process is killed."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(target, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileError(
                f"{target} is being written by another process. Wait for it."
            ) from error
        yield
    finally:
        os.close(descriptor)
