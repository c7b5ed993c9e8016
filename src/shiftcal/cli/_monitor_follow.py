"""Scores files of a folder, in the order of their names, as they appear."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from shiftcal.cli._monitor_batches import Batch, Broken, Item
from shiftcal.errors import FileError, InputError

if TYPE_CHECKING:
    from shiftcal.cli._monitor_halt import Halt

# Seconds between two looks at the folder.
_LOOK = 0.2
_Signature: TypeAlias = tuple[int, int, int]


class Follower:
    """The files of a folder that are complete, each once.

    A file is complete when its size, its time of change and its identity have stayed the same for
    ``settle`` seconds. One that is renamed into place has that from the beginning, but waits as
    long. Names that begin with a dot or ``~``, or end in anything but the suffix of a scores file
    (``x.npz.part``), are passed over. A file waits for those before it that are not complete yet,
    so that the order is that of the names.

    Args:
        folder: The folder.
        done: Names that are not read again; may grow while it runs.
        halt: Asked while waiting.
        idle: Called while there is nothing to read.
        settle: Seconds.
    """

    def __init__(
        self,
        folder: Path,
        done: Collection[str],
        *,
        halt: Halt,
        idle: Callable[[], float | None],
        settle: float,
    ) -> None:
        self._folder, self._done, self._settle = folder, done, settle
        self._halt, self._idle = halt, idle
        self._seen: dict[str, tuple[_Signature, float]] = {}

    def files(self, *, once: bool) -> Iterator[Path]:
        """Every file when it is complete.

        Args:
            once: Whether to end when all that are there have been given.

        Raises:
            FileError: If the folder is gone, or may not be listed.
        """
        while True:
            waiting = self.waiting()
            if once and not waiting:
                return
            complete = self._complete(waiting)
            for name in complete:
                self._halt.check()
                yield self._folder / name
            if not complete:
                self._idle()
                self._halt.wait(None, min(_LOOK, self._settle) if waiting else _LOOK)

    def waiting(self) -> list[os.DirEntry[str]]:
        """What is to be read, by name."""
        try:
            with os.scandir(self._folder) as entries:
                found = [
                    entry
                    for entry in entries
                    if entry.name not in self._done and is_scores(entry.name) and entry.is_file()
                ]
        except OSError as error:
            raise FileError(
                f"{self._folder} cannot be followed: {error.strerror or error}. "
                "Name a folder that is there and may be listed."
            ) from error
        return sorted(found, key=lambda entry: entry.name)

    def _complete(self, waiting: list[os.DirEntry[str]]) -> list[str]:
        """The names up to the first file that is not complete; all are looked at."""
        now, seen = time.monotonic(), {}
        for entry in waiting:
            try:
                status = entry.stat()
            except OSError:  # gone again
                continue
            signature = (status.st_size, status.st_mtime_ns, status.st_ino)
            before, since = self._seen.get(entry.name, (None, now))
            seen[entry.name] = (signature, since if before == signature else now)
        self._seen = seen
        stays = takewhile(lambda name: now - seen[name][1] >= self._settle, seen)
        return list(stays)


def is_scores(name: str) -> bool:
    """Whether a file of this name is to be read; ``x_labels.npy`` is read with ``x_logits.npy``."""
    from shiftcal.scores._read import READABLE
    from shiftcal.scores.npy import is_part

    path = Path(name)
    return not name.startswith((".", "~")) and path.suffix.lower() in READABLE and not is_part(path)


def file_item(path: Path, *, n_classes: int, classes: tuple[str, ...] | None) -> Item:
    """All rows of a scores file as one batch, checked, or why it is none."""
    from shiftcal.cli._inputs import read_target

    try:
        scores = read_target(path, n_classes=n_classes, classes=classes)
        logits = scores.logits()  # its errors name the file
    except InputError as error:
        text = str(error)
        where = "" if str(path) in text else f"file {path}"
        return Broken(where, text, file=path.name)
    return Batch(
        logits if scores.input == "logits" else scores.values,
        f"file {path}",
        kind=scores.input,
        ids=None if scores.ids is None else tuple(scores.ids.tolist()),
        file=path.name,
    )
