"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftcal.errors import FileError


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[Path]:
    """Give a temporary name beside ``path``; rename it to ``path`` if the block succeeds.

    Whatever interrupts the block (an error, Ctrl-C, a full disk), ``path`` is left as it
    was and the temporary file is removed. A reader sees the old file or the new one.

    Args:
        path: The file.
        durable: Whether it outlives a power cut as soon as the block is left. Otherwise the
            system writes it within seconds, and a power cut may leave it damaged: for files
            with a checksum, that can be made again.

    Raises:
        FileError: If the folder does not exist, ``path`` is one, or the file cannot be written.
    """
    target = file_to_write(path)
    temporary = target.with_name(f".shiftcal-{secrets.token_hex(6)}.tmp")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        if durable:
            flush_file(temporary)
        temporary.replace(target)
    except OSError as error:
        raise FileError(_cannot_write(target, error)) from error
    finally:
        with suppress(OSError):  # a folder gone read-only must not hide the error above
            temporary.unlink(missing_ok=True)
    if durable:
        flush_folder(target.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, if it is not there.

    Raises:
        FileError: If that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} could not be made: {error.strerror or error}.") from error


def file_to_write(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can have it.

    Raises:
        FileError: If it is a folder, or has no name to give to a file.
    """
    target = Path(path)
    if not target.name or target.is_dir():
        raise FileError(
            f"{target} could not be written: it is a folder. Name the file to be written."
        )
    return target


def flush_file(path: Path) -> None:
    """Have the content of a file on the disk, so that a power cut after the rename keeps it."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def flush_folder(path: Path) -> None:
    """Have the names in a folder on the disk, where the system can do that."""
    # The new file is in place by now, so nothing that fails here may be reported as its failure.
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _cannot_write(target: Path, error: OSError) -> str:
    return (
        f"{target} could not be written: {error.strerror or error}. "
        "What was there before is unchanged; check that the folder exists, may be written, "
        "and that the disk has room."
    )
