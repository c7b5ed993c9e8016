"""The file of a model: where it is, what it held when it was opened, and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from shiftcal.errors import FileError


class ModelFile:
    """A file that a model was loaded from.

    Args:
        path: Where it is; kept as an absolute path, so that another process finds it.
        kind: What it should be, such as ``"an ONNX file"``, for messages.
    """

    def __init__(self, path: str | Path, kind: str) -> None:
        self.path = Path(path).absolute()
        if not self.path.is_file():
            raise FileError(f"{path} must be {kind}; there is no file of that name.")
        self._seen = _stamp(self.path)
        self._digest: str | None = None

    def digest(self, beside: Callable[[bytes], Sequence[Path]] | None = None) -> str:
        """SHA-256 of the file and of those beside it that it refers to; computed once.

        Args:
            beside: The other files, from the bytes of this one.

        Raises:
            FileError: If the file was changed after the model was loaded from it.
        """
        if self._digest is None:
            if not self.path.is_file() or _stamp(self.path) != self._seen:
                raise FileError(
                    f"{self.path} must stay as it was when the model was loaded from it; it has "
                    "been changed or removed. Load it again."
                )
            data = self.path.read_bytes()
            made = hashlib.sha256(data)
            for other in beside(data) if beside else ():
                with other.open("rb") as stream:
                    made.update(hashlib.file_digest(stream, "sha256").digest())
            self._digest = made.hexdigest()
        return self._digest


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
