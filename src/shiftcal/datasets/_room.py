"""Room on the disk."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from shiftcal.errors import FileError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def check_room(folder: Path, needed: int, what: str) -> None:
    """Refuse to begin what cannot end well.

    Raises:
        FileError: If the disk has less room than ``needed`` bytes.
    """
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise FileError(
            f"{what} needs {needed:,} bytes in {folder}, and the disk has room for {free:,}. "
            "Make room, or name another folder."
        )


def full_disk(error: OSError) -> bool:
    """Whether it says that there is no room left."""
    return error.errno in _FULL
