"""The user's own photographs of frost."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.corruptions._frost_pictures import Pictures, packed
from shiftcal.corruptions._shrink import shrink
from shiftcal.errors import FileError

# A file and what changes when it is written or exchanged for another.
_Stamp: TypeAlias = tuple[Path, int, int, int, int]

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"})


def photo_files(folder: Path) -> list[Path]:
    """The photographs that are used: all, in the order of their names, but five of six.

    The published generator comes with six and draws among the first five.

    Raises:
        FileError: If there is no such folder, or no photograph in it.
    """
    if not folder.is_dir():
        raise FileError(f"photos: {str(folder)!r} is not a folder. Give one with photos of frost")
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise FileError(
            f"photos: no image is in {str(folder)!r}. Put in photos of frost, with names that end "
            f"in one of {', '.join(sorted(SUFFIXES))}"
        )
    return files[:5] if len(files) == 6 else files


def frost_photos(folder: Path, scale: float) -> Pictures:
    """The photographs at ``scale`` times their size.

    Raises:
        FileError: If one cannot be read.
    """
    return _scaled(_stamps(folder), scale)


def photos_digest(folder: Path) -> str:
    """SHA-256 of the photographs; they are read again only if one was changed.

    Raises:
        FileError: If one cannot be read.
    """
    return _digest(_stamps(folder))


def _stamps(folder: Path) -> tuple[_Stamp, ...]:
    """The photographs as they are now: what is kept of them is kept by this."""
    return tuple(_stamp(file) for file in photo_files(folder))


def _stamp(file: Path) -> _Stamp:
    try:
        found = file.stat()
    except OSError as error:
        raise _unreadable(file, error) from error
    return file.absolute(), found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


@functools.lru_cache(maxsize=8)
def _scaled(stamps: tuple[_Stamp, ...], scale: float) -> Pictures:
    return packed([shrink(_read(file), scale) for file, *_ in stamps])


@functools.lru_cache(maxsize=8)
def _digest(stamps: tuple[_Stamp, ...]) -> str:
    made = hashlib.sha256()
    for file, *_ in stamps:
        try:
            made.update(file.read_bytes())
        except OSError as error:
            raise _unreadable(file, error) from error
    return made.hexdigest()


def _unreadable(file: Path, error: Exception) -> FileError:
    return FileError(
        f"photos: {str(file)!r} cannot be read as an image ({error}). Remove or replace it"
    )


def _read(file: Path) -> NDArray[np.uint8]:
    image = require("PIL.Image", extra="images", needed_by="frost with photos")
    operations = require("PIL.ImageOps", extra="images", needed_by="frost with photos")
    try:
        with image.open(file) as opened:
            upright = operations.exif_transpose(opened).convert("RGB")
    except (OSError, ValueError, SyntaxError) as error:
        raise _unreadable(file, error) from error
    return np.asarray(upright)
