"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftcal.errors import FileError


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside ``path``; rename it to ``path`` if the block succeeds.

    Whatever interrupts the block (an error, Ctrl-C, a full disk), ``path`` is left as it
    was and the temporary file is removed. A reader sees the old file or the new one.

    Raises:
        FileError: If the folder does not exist or the file cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f".shiftcal-{secrets.token_hex(6)}.tmp")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        _flush_to_disk(temporary)
        temporary.replace(target)
    except OSError as error:
        raise FileError(_cannot_write(target, error)) from error
    finally:
        with suppress(OSError):  # a folder gone read-only must not hide the error above
            temporary.unlink(missing_ok=True)


def _cannot_write(target: Path, error: OSError) -> str:
    return (
        f"{target} could not be written: {error.strerror or error}. "
        "What was there before is unchanged; check that the folder exists, may be written, "
        "and that the disk has room."
    )


def _flush_to_disk(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
