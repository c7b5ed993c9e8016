"""Images in files of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets.encoded import EncodedImages
from shiftcal.errors import FileError, MissingData


class FileImages(EncodedImages):
    """One file an image; each is opened when it is read.

    Args:
        root: The folder that the files are below.
        files: Their paths relative to it, in order.
        name: As for every set.
        labels: As for every set.
        classes: As for every set.
        fields: As for every set.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        files: Sequence[str | os.PathLike[str]],
        *,
        name: str,
        labels: object = None,
        classes: Sequence[str] | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        self.root = Path(root).absolute()
        self.files = [os.fspath(file) for file in files]
        super().__init__(len(self.files), name=name, labels=labels, classes=classes, fields=fields)

    def _encoded(self, index: int) -> bytes:
        file = self.root / self.files[index]
        try:
            if file.exists() and not file.is_file():  # a pipe would be waited for
                raise FileError(f"{file} is a folder, a pipe or the like, not an image.")
            return file.read_bytes()
        except OSError as error:
            kind = MissingData if isinstance(error, FileNotFoundError) else FileError
            raise kind(f"{file} cannot be read as an image: {error.strerror or error}.") from error

    def _called(self, index: int) -> str:
        return str(self.root / self.files[index])

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """The paths relative to the folder."""
        return [Path(self.files[int(index)]).as_posix() for index in indices]
