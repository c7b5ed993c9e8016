"""Writing an ``.npz`` archive whose arrays need not be in memory."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class NpzStream(AbstractContextManager["NpzStream"]):
    """An archive as ``np.savez`` writes it, array by array, each in pieces if need be.

    The same arrays give the same bytes: nothing of the time or the machine is in them.

    Args:
        path: The file; it is made anew.
    """

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)

    def array(self, name: str, values: NDArray[Any]) -> None:
        """Add an array that is in memory."""
        self.pieces(name, values.shape, values.dtype, [values])

    def pieces(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, pieces: Iterable[NDArray[Any]]
    ) -> None:
        """Add an array that comes in pieces along its first axis.

        Args:
            name: What it is called in the archive.
            shape: Of the whole.
            dtype: Of the whole; pieces are converted to it.
            pieces: Together ``shape[0]`` rows.
        """
        kind = np.dtype(dtype)
        header = {
            "descr": np.lib.format.dtype_to_descr(kind),
            "fortran_order": False,
            "shape": shape,
        }
        rows = 0
        # A member without a date of its own has that of 1980, always the same.
        with self._zip.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, header)
            for piece in pieces:
                member.write(np.ascontiguousarray(piece, kind).tobytes())
                rows += len(piece) if shape else 1
        assert not shape or rows == shape[0], f"{name}: {rows} rows came, {shape[0]} were said"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()
