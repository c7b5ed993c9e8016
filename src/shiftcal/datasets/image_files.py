"""Image files: finding them in a folder, and reading one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from shiftcal._optional import require
from shiftcal._types import Images
from shiftcal.errors import FileError, InputError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif")
# More than any camera makes; a small file that claims more is meant to fill the memory.
# Pillow warns of it from here on.
MOST_PIXELS = 89_478_485


def find_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Image files below a folder, as sorted paths relative to it; hidden ones are left out.

    Raises:
        FileError: If there is no such folder, or no image in it.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileError(f"{root} is not a folder.")
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
        raise FileError(f"{root} holds no images. Files ending in {', '.join(SUFFIXES)} are read.")
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
    pillow = require("PIL.Image", extra="images", needed_by="reading an image file")
    file = Path(path)
    if file.exists() and not file.is_file():  # a pipe would be waited for
        raise FileError(f"{file} is a folder, a pipe or the like, not an image.")
    try:
        with pillow.open(file) as opened:
            _check_kind(file, opened)
            image = opened.convert("RGB")
    except FileError:
        raise
    except Exception as error:  # decoders raise whatever they like on damaged files
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        text = str(reason).rstrip(".")
        raise FileError(f"{file} cannot be read as an image: {text}.") from error
    if resize is not None:
        image = _resized(file, image, resize, pillow)
    if crop is not None:
        image = _cropped(file, image, crop)
    return np.array(image)


def check_size(value: int | None, *, name: str) -> None:
    """A side in pixels that can be asked for."""
    if value is not None and not 8 <= value <= 10_000:
        raise InputError(f"{name} must be from 8 to 10,000 pixels; got {value}.")


def _check_kind(file: Path, image: Any) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise FileError(
            f"{file} says it has {width} x {height} pixels; more than {MOST_PIXELS:,} are not read."
        )
    if image.mode.startswith(("I", "F")):
        raise FileError(
            f"{file} has more than 8 bits a channel (mode {image.mode}), and how to reduce them is "
            "not for us to guess. Convert it to 8 bits first."
        )


def _resized(file: Path, image: Any, side: int, pillow: Any) -> Any:
    width, height = image.size
    if width <= height:
        size = (side, int(side * height / width))
    else:
        size = (int(side * width / height), side)
    if size[0] * size[1] > MOST_PIXELS:
        raise FileError(
            f"{file} is {width} x {height} and would become {size[0]} x {size[1]}; more than "
            f"{MOST_PIXELS:,} pixels are not made."
        )
    return image.resize(size, pillow.Resampling.BILINEAR)


def _cropped(file: Path, image: Any, side: int) -> Any:
    width, height = image.size
    if min(width, height) < side:
        raise FileError(f"{file} is {width} x {height}, too small to cut {side} x {side} from it.")
    left, top = round((width - side) / 2), round((height - side) / 2)
    return image.crop((left, top, left + side, top + side))
