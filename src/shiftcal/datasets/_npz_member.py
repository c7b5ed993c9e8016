"""One array of an ``.npz`` file, named in one text: ``FILE.npz:KEY``."""

from __future__ import annotations

import os
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import FileError, MissingData

# The colon of a drive, as in C:\x.npz, stands before the ending and not behind it.
_MEMBER = re.compile(r"(.+\.npz):(.+)", re.IGNORECASE | re.DOTALL)
# More than labels of any set take; what a small file unpacks to beyond it is meant to do harm.
_MOST_BYTES = 1 << 28
_SHOWN = 10


def member_of(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file and the key of ``FILE.npz:KEY``; any other path has none.

    A file of that very name is the path it is.
    """
    text = os.fspath(path)
    parts = None if Path(text).exists() else _MEMBER.fullmatch(text)
    return (Path(text), None) if parts is None else (Path(parts[1]), parts[2])


def read_member(file: Path, key: str | None, *, default: str | None = None) -> NDArray[Any]:
    """One array of the file. Pickled objects are never loaded.

    Args:
        file: The ``.npz`` file.
        key: Name of the array.
        default: Its name if no key was given; ``None`` if there must be one.

    Raises:
        MissingData: If there is no such file.
        FileError: If there is no such array, or the file is damaged or something else.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            infos = {
                info.filename.removesuffix(".npy"): info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            wanted = default if key is None else key
            if wanted is None or wanted not in infos:
                raise FileError(_no_such(file, wanted, list(infos)))
            if infos[wanted].file_size > _MOST_BYTES:
                raise FileError(
                    f"{file}: the array {wanted!r} must take at most {_MOST_BYTES:,} bytes; it "
                    f"takes {infos[wanted].file_size:,}."
                )
            held = BytesIO(archive.read(infos[wanted]))
        return np.lib.format.read_array(held, allow_pickle=False)
    except FileError:
        raise
    except FileNotFoundError as error:
        raise MissingData(f"{file} could not be read: {error.strerror}.") from error
    except Exception as error:  # damaged bytes make numpy and zipfile raise anything
        text = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
        raise FileError(f"{file} could not be read as an .npz file: {text}.") from error


def _no_such(file: Path, wanted: str | None, keys: list[str]) -> str:
    if not keys:
        return f"{file} must hold arrays; it holds none."
    shown = ", ".join(map(repr, keys[:_SHOWN])) + (", ..." if len(keys) > _SHOWN else "")
    what = "which of its arrays is meant must be said" if wanted is None else f"no array {wanted!r}"
    return f"{file}: {what}; it holds {shown}. Name one as {file.name}:{keys[0]}."
