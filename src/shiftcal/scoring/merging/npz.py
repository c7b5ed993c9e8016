"""Arrays of ``.npz`` archives, read and written a stretch of rows at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from shiftcal.errors import FileError
from shiftcal.scores._opening import find, parsing, refuse_bomb, require_magic

_KIND = "an .npz archive"
# Bytes of an array held at once.
_STRETCH = 1 << 24
# Rows held at once: of few classes, what is computed of a row is larger than the row.
_ROWS = 1 << 15


class Head(NamedTuple):
    """What an array is, before it is read.

    Attributes:
        dtype: Type of its entries.
        shape: Its shape.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def heads(path: Path) -> dict[str, Head]:
    """Every array of an archive by name, none of them read.

    Raises:
        FileError: If the file is missing, damaged, or holds Python objects.
    """
    require_magic(find(path), (b"PK",), _KIND)
    found = {}
    with parsing(path, _KIND), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            refuse_bomb(path, unpacked=info.file_size, stored=info.compress_size)
            with archive.open(info) as file:
                found[info.filename.removesuffix(".npy")] = _head(file)[0]
    return found


def stretches(path: Path, name: str) -> Iterator[NDArray[Any]]:
    """The rows of an array, in order and never all at once.

    Raises:
        FileError: If the archive is damaged or cut short.
    """
    with (
        parsing(path, _KIND),
        zipfile.ZipFile(path) as archive,
        archive.open(f"{name}.npy") as file,
    ):
        head, turned = _head(file)
        if turned:
            raise FileError(
                f"{path}: {name} is stored column by column, and is read row by row. "
                "Save np.ascontiguousarray of it."
            )
        n, *rest = head.shape
        row = head.dtype.itemsize * int(np.prod(rest, dtype=np.int64))
        rows = min(_ROWS, max(1, _STRETCH // max(1, row)))
        for start in range(0, n, rows):
            count = min(rows, n - start)
            raw = file.read(count * row)
            yield np.frombuffer(raw, head.dtype).reshape(count, *rest)
        if file.read(1):  # the end: only here is the archive's own checksum compared
            raise ValueError(f"{name} is longer than it says")


def _head(file: IO[bytes]) -> tuple[Head, bool]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, turned, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    return Head(dtype, shape), turned and len(shape) > 1


@contextmanager
def new_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """An archive to be filled by :func:`write_array`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        yield archive


def write_array(
    archive: zipfile.ZipFile, name: str, head: Head, rows: Iterable[NDArray[Any]]
) -> None:
    """Add an array to an archive, byte for byte as ``numpy.savez`` would.

    Args:
        archive: Open for writing.
        name: Of the array.
        head: Type and shape of the whole.
        rows: Its rows, in order.
    """
    described = {
        "descr": npy.dtype_to_descr(head.dtype),
        "fortran_order": False,
        "shape": head.shape,
    }
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        npy.write_array_header_1_0(file, described)
        for stretch in rows:
            file.write(np.ascontiguousarray(stretch, head.dtype).tobytes())
