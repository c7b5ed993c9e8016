"""Several processes in one folder: who is the last, and who may change what all read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shiftcal._files import make_folder
from shiftcal.errors import FileError


class Guest:
    """A process that uses a folder, perhaps beside others.

    Args:
        descriptor: Of the folder, locked together with the other guests; negative if there are no
            locks.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def is_last(self) -> bool:
        """Whether nobody else uses the folder; nobody can from now on until we leave."""
        if self._descriptor < 0:
            return True
        import fcntl

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


@contextmanager
def guest_of(folder: Path) -> Iterator[Guest]:
    """Use a folder beside others, made if it is not there; the system notices if we are killed.

    Raises:
        FileError: If the folder cannot be made.
    """
    while True:
        make_folder(folder)
        with _locked(folder, shared=True) as descriptor:
            # The last guest before us may have removed it while we waited at the door.
            if descriptor is None or (descriptor >= 0 and not _is_still(folder, descriptor)):
                continue
            yield Guest(descriptor)
            return


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until nobody else is in such a block for the same folder."""
    with _locked(folder, shared=False):
        yield


@contextmanager
def _locked(folder: Path, *, shared: bool) -> Iterator[int | None]:
    """A descriptor of the folder, locked; -1 where there are no locks, ``None`` if it is gone."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield -1
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise FileError(f"{folder} could not be opened: {error.strerror or error}.") from error
    try:
        with suppress(OSError):  # the drive knows no locks
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_still(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
