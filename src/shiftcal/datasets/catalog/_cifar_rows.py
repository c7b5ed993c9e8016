"""Images of CIFAR as they are stored: rows of 1,024 red, then green, then blue values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.datasets.base import ImageSet

PIXELS = 3072


@dataclass(frozen=True)
class Rows:
    """Where the rows of a batch are in its file.

    Attributes:
        file: The file.
        offset: Where the first record begins.
        n: How many there are.
        lead: Bytes of a record before its pixels.
        held: The rows themselves ``(n, 3072)``, if they do not stand in the file as they are.
    """

    file: Path
    offset: int
    n: int
    lead: int = 0
    held: NDArray[np.uint8] | None = None

    def open(self) -> NDArray[np.uint8]:
        """The rows ``(n, 3072)``, mapped into memory unless they are held."""
        if self.held is not None:
            return self.held
        shape = (self.n, self.lead + PIXELS)
        mapped = np.memmap(self.file, np.uint8, "r", self.offset, shape)
        return np.asarray(mapped)[:, self.lead :]


class CifarRows(ImageSet):
    """Batches of CIFAR one after the other; other processes open the files themselves.

    Args:
        stored: Where the rows of each are.
        name: As for every set.
        labels: As for every set.
        classes: As for every set.
    """

    def __init__(
        self, stored: Sequence[Rows], *, name: str, labels: object, classes: Sequence[str]
    ) -> None:
        self.stored = tuple(stored)
        self._open()
        super().__init__(int(self._starts[-1]), name=name, labels=labels, classes=classes)

    def _open(self) -> None:
        self._rows = [batch.open() for batch in self.stored]
        self._starts = np.cumsum([0, *(batch.n for batch in self.stored)])

    def _image(self, index: int) -> Images:
        return self._images(np.array([index]))[0]

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8]:
        rows = np.empty((len(indices), PIXELS), np.uint8)
        owners = np.searchsorted(self._starts, indices, side="right") - 1
        for owner in np.unique(owners):
            mine = owners == owner
            rows[mine] = self._rows[owner][indices[mine] - self._starts[owner]]
        return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_rows"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
