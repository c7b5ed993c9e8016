"""Calibrated confidences as JSON lines, one a row, in a file that is never half acknowledged."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shiftcal._files import flush_folder
from shiftcal.errors import FileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def row_lines(
    first: int,
    confidence: NDArray[np.float64],
    predicted: NDArray[np.intp],
    ids: Sequence[str | int] | None,
) -> list[str]:
    """One JSON object a row; numbers have all their digits.

    Args:
        first: Number of the first row, from 0.
        confidence: ``(n,)``.
        predicted: ``(n,)``.
        ids: A name for every row.
    """
    names = [""] * len(confidence) if ids is None else [f', "id": {json.dumps(i)}' for i in ids]
    rows = zip(confidence.tolist(), predicted.tolist(), names, strict=True)
    return [
        f'{{"type": "confidence", "row": {first + i}, "confidence": {c!r}, "predicted": {p}{name}}}'
        for i, (c, p, name) in enumerate(rows)
    ]


class ConfidencesFile:
    """A file that grows by whole lines.

    Args:
        path: The file.
        acknowledged: Bytes of it that the state knows; what is behind them belongs to rows that
            come again, and is cut off. ``None`` for a new file.

    Raises:
        FileError: If the file is there though it should be new, or is shorter than it should be.
    """

    def __init__(self, path: Path, acknowledged: int | None) -> None:
        self.path = path
        self.size = acknowledged or 0
        self._check(acknowledged)
        try:
            self._file = path.open("ab", buffering=1 << 16)
            self._file.truncate(self.size)
        except OSError as error:
            raise FileError(self._cannot(error)) from error
        flush_folder(path.parent)
        self._written = self.size

    def write(self, lines: Sequence[str]) -> None:
        """Add lines; they are not yet acknowledged."""
        content = "".join(f"{line}\n" for line in lines).encode()
        try:
            self._file.write(content)
        except OSError as error:
            raise FileError(self._cannot(error)) from error
        self._written += len(content)

    def mark(self) -> int:
        """The end of the file, to come back to."""
        return self._written

    def rewind(self, mark: int) -> None:
        """Take back the lines since a mark."""
        try:
            self._file.flush()
            self._file.truncate(mark)
        except OSError as error:
            raise FileError(self._cannot(error)) from error
        self._written = mark

    def commit(self) -> int:
        """Have all lines on the disk; gives the size of the file then."""
        if self._written != self.size:
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise FileError(self._cannot(error)) from error
            self.size = self._written
        return self.size

    def close(self) -> None:
        """Cut off what was not acknowledged, half a line on a full disk for one."""
        with suppress(OSError):  # told when it was written
            self._file.close()
        if self._written != self.size:
            os.truncate(self.path, self.size)

    def _check(self, acknowledged: int | None) -> None:
        size = self.path.stat().st_size if self.path.is_file() else None
        if acknowledged is None and size:
            raise FileError(
                f"{self.path} is there already, and confidences of another run would be mixed with "
                "it. Name another file, remove this one, or go on with the --state it belongs to."
            )
        if acknowledged and (size is None or size < acknowledged):
            raise FileError(
                f"{self.path} must have the {acknowledged} bytes that the state knows of; "
                f"{'it is not there' if size is None else f'it has {size}'}. Put it back, or begin "
                "anew with another --state."
            )

    def _cannot(self, error: OSError) -> str:
        return (
            f"{self.path} could not be written: {error.strerror or error}. What the state "
            "acknowledges is kept; make room, or check the folder, and start again."
        )
