"""A folder for what is not finished, used by several processes at once, and gone when all is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftcal.scoring.sharing import guest_of


@contextmanager
def workshop(folder: Path, *, host: Path | None = None) -> Iterator[Path]:
    """The folder, which is removed by the last who leaves it with his work done.

    If the work is broken off it stays, unless nothing was finished.

    Args:
        folder: Where it is; made if it is not there.
        host: The folder it lies in, if nothing of that is worth keeping without the workshop: what
            killed processes left in it is removed too, and so is the folder if it is empty then.

    Raises:
        FileError: If the folder cannot be made.
    """
    with guest_of(folder) as guest:
        done = False
        try:
            yield folder
            done = True
        finally:
            if (done or not any(folder.rglob("*.shard"))) and guest.is_last():
                _remove(folder, host)


def _remove(folder: Path, host: Path | None) -> None:
    if host is not None:
        for file in host.glob(".shiftcal-*.tmp"):
            with suppress(OSError):
                file.unlink()
    # After those: a folder that holds anything, and no workshop, is not known as ours any more.
    shutil.rmtree(folder, ignore_errors=True)
    if host is not None:
        with suppress(OSError):  # finished work is in it
            host.rmdir()
