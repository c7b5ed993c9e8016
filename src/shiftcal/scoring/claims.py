"""Who is working on a shard: processes that share a folder share the work."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path


class Claims:
    """Locks on names in a folder; the system lets go of them if the process is killed.

    They only save work: where they do not hold, as on some network drives, a shard may be done
    twice, with the same result.

    Args:
        folder: Where the lock files are; made when the first is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}
        self._guard = threading.Lock()

    def take(self, key: str) -> bool:
        """Whether the shard is ours from now on."""
        try:
            import fcntl
        except ImportError:  # Windows
            return True
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder / key, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:  # the drive knows no locks
            os.close(descriptor)
            return True
        with self._guard:
            self._held[key] = descriptor
        return True

    def release(self, key: str) -> None:
        """Let go of a shard; nothing happens if it is not ours."""
        with self._guard:
            descriptor = self._held.pop(key, None)
        if descriptor is not None:
            with suppress(OSError):
                (self._folder / key).unlink()
            os.close(descriptor)

    def release_all(self) -> None:
        """Let go of every shard."""
        for key in list(self._held):
            self.release(key)
