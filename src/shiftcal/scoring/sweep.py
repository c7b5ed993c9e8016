"""What killed processes left in a shared folder, removed once it is old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shiftcal.scoring.claims import Claims

# Seconds after which nobody is writing a file any more; also between two sweeps.
_OLD = 24 * 3600
_STAMP = ".swept"


def sweep(folder: Path, claims: Claims, taken: Path) -> None:
    """Remove files that were never finished, and claims that nobody holds, if older than a day.

    A large folder takes seconds to look through, so that it is done once a day, by whoever comes
    first. Nothing happens where nothing can be written.

    Args:
        folder: Of shards, each in a folder below it.
        claims: On shards of that folder.
        taken: Where the files of the claims are.
    """
    before = time.time() - _OLD
    stamp = folder / _STAMP
    with suppress(OSError):
        if _is_older(stamp, before):
            stamp.touch()
            for file in _unfinished(folder):
                if _is_older(file, before):
                    file.unlink(missing_ok=True)
            for file in list(taken.glob("*")):
                # Taken before it is removed: what is held is never pulled away from its holder.
                if _is_older(file, before) and claims.take(file.name):
                    claims.release(file.name)


def _unfinished(folder: Path) -> Iterator[Path]:
    for below in [folder, *(entry for entry in folder.iterdir() if entry.is_dir())]:
        yield from below.glob(".shiftcal-*.tmp")


def _is_older(file: Path, before: float) -> bool:
    """Also if it is not there."""
    try:
        return file.stat().st_mtime < before
    except FileNotFoundError:
        return True
