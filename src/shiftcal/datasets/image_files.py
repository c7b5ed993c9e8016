"""Image files: finding them in a folder, and reading one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from shiftcal._framing import MOST_PIXELS, Framing
from shiftcal._optional import require
from shiftcal._types import Images
from shiftcal.errors import FileError, InputError, MissingData

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif")
# Pillow knows others, of which some start programs to be read.
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "PPM", "TIFF", "GIF")


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Image files below a folder, as sorted paths relative to it; hidden ones are left out.

    Raises:
        MissingData: If there is no such folder, or no image in it.
    """
    root = Path(folder)
    if not root.is_dir():
        raise MissingData(f"{root} is not a folder.")
    found: list[Path] = []
    above: dict[str, frozenset[tuple[int, int]]] = {}
    for parent, folders, files in os.walk(root, followlinks=True):
        told = Path(parent).stat()
        inside = above.get(parent, frozenset()) | {(told.st_dev, told.st_ino)}
        # A link to a folder it is in would be followed forever.
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and _place(Path(parent, name)) not in inside
        ]
        above.update({str(Path(parent, name)): inside for name in folders})
        here = Path(parent).relative_to(root)
        found += [
            here / name
            for name in files
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES
        ]
    if not found:
        raise MissingData(
            f"{root} holds no images. Files ending in {', '.join(SUFFIXES)} are read."
        )
    return sorted(found, key=lambda path: path.parts)


def _place(path: Path) -> tuple[int, int]:
    told = path.stat()
    return told.st_dev, told.st_ino


def read_image(
    path: str | os.PathLike[str], *, resize: int | None = None, crop: int | None = None
) -> Images:
    """One image file as uint8 ``(height, width, 3)``; a grey one has three equal channels.

    Args:
        path: The file. Transparency is left out, and of an animation the first picture is read.
        resize: Make the shorter side this long first (bilinear, with the other in proportion).
        crop: Then cut a square of this side from the centre.

    Raises:
        FileError: If the file is no image, is damaged, or is smaller than the crop.
    """
    file = Path(path)
    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise FileError(f"{file} is a folder, a pipe or the like, not an image.")
    picture = open_picture(file, name=str(file))
    try:
        return np.array(Framing(resize, crop).of_picture(picture))
    except InputError as error:
        raise FileError(f"{file}: {error}") from error


def open_picture(source: Path | IO[bytes], *, name: str) -> Any:
    """A decoded Pillow image with the channels red, green and blue.

    Args:
        source: A file, or something to read the bytes of one from.
        name: What it is called in messages.

    Raises:
        FileError: If it is no image of the kinds in :data:`SUFFIXES`, is damaged, or is too large.
    """
    pillow = require("PIL.Image", extra="images", needed_by="reading an image file")
    try:
        with pillow.open(source, formats=_FORMATS) as opened:
            _check_kind(name, opened)
            return opened.convert("RGB")
    except FileError:
        raise
    except Exception as error:  # decoders raise whatever they like on damaged files
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        if isinstance(error, pillow.UnidentifiedImageError):
            reason = "cannot identify it as a kind that is read"
        text = str(reason).rstrip(".")
        raise FileError(f"{name} cannot be read as an image: {text}.") from error


def check_size(value: int | None, *, name: str) -> None:
    """A side in pixels that can be asked for."""
    if value is not None and not 8 <= value <= 10_000:
        raise InputError(f"{name} must be from 8 to 10,000 pixels; got {value}.")


def _check_kind(name: str, image: Any) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise FileError(
            f"{name} says it has {width} x {height} pixels; more than {MOST_PIXELS:,} are not read."
        )
    if image.mode.startswith(("I", "F")):
        raise FileError(
            f"{name} has more than 8 bits a channel (mode {image.mode}), and how to reduce them is "
            "not for us to guess. Convert it to 8 bits first."
        )
