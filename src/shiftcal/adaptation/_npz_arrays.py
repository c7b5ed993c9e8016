"""Uncompressed ``.npz`` archives: written the same every time, and read row by row."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from shiftcal._files import atomic_write
from shiftcal.errors import FileError
from shiftcal.scores._npz_stream import NpzStream

# Where a member's own header tells how long its name and its extra field are, and its length.
_LENGTHS, _HEADER = 26, 30


def mapped(path: Path, name: str) -> NDArray[Any]:
    """An array of an archive, memory-mapped.

    Args:
        path: The archive, as ``numpy.savez`` and shiftcal write it.
        name: The array's name.

    Raises:
        FileError: If there is no such file or array, or it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(f"{name}.npy")
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name} is compressed")
        with path.open("rb") as file:
            file.seek(info.header_offset + _LENGTHS)
            lengths = struct.unpack("<HH", file.read(_HEADER - _LENGTHS))
            file.seek(info.header_offset + _HEADER + sum(lengths))
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, turned, dtype = read(file)
            start = file.tell()
        if turned or dtype.hasobject:
            raise ValueError(f"{name} is not stored row by row")
        return np.memmap(path, dtype, "r", start, shape)
    except (OSError, ValueError, KeyError, struct.error, zipfile.BadZipFile) as error:
        raise FileError(f"{path} could not be read: {error}. Make it again.") from error


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an archive, by name.

    Raises:
        FileError: If there is no such file, or it is damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise FileError(
            f"{path} could not be read: {error}. Remove the folder, and run again."
        ) from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any] | None], *, durable: bool) -> None:
    """Write an archive, whole or not at all; nothing of the time is in it.

    Args:
        path: The file.
        arrays: By name; ``None`` is left out.
        durable: Whether the file outlives a power cut at once.
    """
    with atomic_write(path, durable=durable) as temporary, NpzStream(temporary) as archive:
        for name, values in arrays.items():
            if values is not None:
                archive.array(name, values)
