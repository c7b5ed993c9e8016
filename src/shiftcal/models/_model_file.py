"""The file of a model: where it is, and the digest of what it held when it was opened."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from shiftcal.errors import FileError, MissingData


class ModelFile:
    """A file that a model is about to be loaded from, and those beside it that it refers to.

    Args:
        path: Where it is; kept as an absolute path, so that another process finds it.
        kind: What it should be, such as ``"an ONNX file"``, for messages.
        beside: The other files, from the bytes of this one.

    Attributes:
        data: What the file holds, until :meth:`loaded`.
        digest: SHA-256 of all of them.
    """

    def __init__(
        self, path: str | Path, kind: str, beside: Callable[[bytes], Sequence[Path]] | None = None
    ) -> None:
        self.path = Path(path).absolute()
        if not self.path.is_file():
            raise MissingData(f"{path} must be {kind}; there is no file of that name.")
        self._stamps = {self.path: _stamp(self.path)}
        self.data = self.path.read_bytes()
        made = hashlib.sha256(self.data)
        others = beside(self.data) if beside else ()
        for other in (one for one in others if one.is_file()):  # who loads it misses the others
            self._stamps[other] = _stamp(other)
            with other.open("rb") as stream:
                made.update(hashlib.file_digest(stream, "sha256").digest())
        self.digest: str | None = made.hexdigest()

    def loaded(self) -> None:
        """Let go of the bytes, if the files are still those that were read.

        Raises:
            FileError: If one was changed in the meantime.
        """
        self.data = b""
        for path, stamp in self._stamps.items():
            if not path.is_file() or _stamp(path) != stamp:
                raise changed(path)


def check_same(path: Path, digest: str | None, before: str | None) -> None:
    """Refuse a file that is opened again and has another digest than before, if that is known."""
    if None not in (digest, before) and digest != before:
        raise changed(path)


def changed(path: Path) -> FileError:
    """The error for a file that is not what a model was loaded from."""
    return FileError(
        f"{path} must stay as it was when the model was loaded from it; it has been changed or "
        "removed. Make the model anew."
    )


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino
