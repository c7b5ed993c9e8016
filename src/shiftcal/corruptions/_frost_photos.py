"""The user's own photographs of frost."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.corruptions._frost_pictures import Pictures, packed
from shiftcal.corruptions._shrink import shrink
from shiftcal.errors import FileError

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
    files = photo_files(folder)
    return _scaled(tuple((file, file.stat().st_mtime_ns) for file in files), scale)


@functools.lru_cache(maxsize=8)
def _scaled(files: tuple[tuple[Path, int], ...], scale: float) -> Pictures:
    """Keyed by the times of change, so that a file is read anew when it is another."""
    return packed([shrink(_read(file), scale) for file, _ in files])


def _read(file: Path) -> NDArray[np.uint8]:
    image = require("PIL.Image", extra="images", needed_by="frost with photos")
    operations = require("PIL.ImageOps", extra="images", needed_by="frost with photos")
    try:
        with image.open(file) as opened:
            upright = operations.exif_transpose(opened).convert("RGB")
    except (OSError, ValueError, SyntaxError) as error:
        raise FileError(
            f"photos: {str(file)!r} cannot be read as an image ({error}). Remove or replace it"
        ) from error
    return np.asarray(upright)
