"""Many small images in one picture, tile beside tile."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count, to_array
from shiftcal._checks.images import LEAST_SIDE
from shiftcal._types import Images
from shiftcal.datasets._npz_member import member_of, read_member
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.containers.arrays import ArrayImages
from shiftcal.datasets.image_files import open_picture
from shiftcal.datasets.label_files import labels_for, read_labels
from shiftcal.errors import FileError, InputError, MissingData

_TILE = re.compile(r"([0-9]{1,5})(?:x([0-9]{1,5}))?")


def mosaic(
    path: str | os.PathLike[str],
    *,
    tile: int | str,
    labels: object = None,
    classes: Sequence[str] | None = None,
    keep: object = None,
    name: str | None = None,
) -> ImageSet:
    """Tiles of one picture, row by row from the upper left.

    The picture should be lossless, a PNG or such a WebP; it is decoded once and held in memory.
    Another process is sent the path and decodes it itself. As every picture it has at most
    89,478,485 pixels, which is 87,381 tiles of 32 x 32.

    Args:
        path: The picture.
        tile: Side of a tile in pixels; or text, ``"32x48"`` for height and width.
        labels: ``(n,)``, or a file of them such as ``labels.npz:test``. They say how many images
            there are: tiles at the end of the last row that have none must be empty, of one colour.
        classes: Names of the classes.
        keep: Which images to keep: a mask ``(n,)`` or indices, or ``FILE.npz:KEY``, an array of
            either. ``labels`` are those of all.
        name: As for every set; by default the path.

    Raises:
        MissingData: If there is no such file.
        FileError: If it is no picture, or too large.
        InputError: If tiles, labels or what is kept do not fit it.
    """
    picture = _Picture(Path(path).absolute(), _height_and_width(tile))
    grid, digest = picture.decoded()
    n = None if labels is None else _count(labels)
    if n is not None:
        picture.refuse_surplus(grid, n)
    tiles = grid.reshape(-1, *grid.shape[2:])[:n]
    found: ImageSet = _MosaicImages(tiles, picture, digest, name=name or str(path))
    if isinstance(labels, (str, os.PathLike)):
        labels = labels_for(found, labels)
    found = found.relabelled(labels, classes=classes)
    return found if keep is None else found.subset(_kept(keep, found), name=name)


@dataclass(frozen=True)
class _Picture:
    """A file, and the height and width of its tiles."""

    file: Path
    tile: tuple[int, int]

    def decoded(self) -> tuple[Images, str]:
        """All tiles ``(rows, columns, height, width, 3)``, and a digest of the file."""
        encoded = self._encoded()
        pixels = np.asarray(open_picture(BytesIO(encoded), name=str(self.file)))
        (height, width), (down, across) = self.tile, pixels.shape[:2]
        if down % height or across % width:
            raise InputError(
                f"{self.file} must be made of tiles of {height} x {width} pixels (height x width); "
                f"it is {down} x {across}, no multiple of that. Say tile=SIDE or "
                "tile=HEIGHTxWIDTH as it was made."
            )
        grid = pixels.reshape(down // height, height, across // width, width, 3)
        tiles = np.ascontiguousarray(grid.transpose(0, 2, 1, 3, 4))
        return tiles, hashlib.blake2b(encoded, digest_size=16).hexdigest()

    def _encoded(self) -> bytes:
        if not self.file.exists():
            raise MissingData(f"{self.file} does not exist. Check the path.")
        if not self.file.is_file():  # a pipe would be waited for
            raise FileError(f"{self.file} is a folder, a pipe or the like, not a picture.")
        try:
            return self.file.read_bytes()
        except OSError as error:
            raise FileError(f"{self.file} could not be read: {error.strerror or error}.") from error

    def refuse_surplus(self, grid: Images, n: int) -> None:
        """Refuse tiles after the first ``n`` but for empty ones at the end of the last row."""
        columns = grid.shape[1]
        surplus = grid.reshape(-1, *grid.shape[2:])[n:]
        if len(surplus) >= columns:
            raise InputError(
                f"{self.file} must have a label for every tile but empty ones in its last row; it "
                f"has {n + len(surplus):,} tiles, {columns} a row, and there are {n:,} labels. "
                "Check tile and labels."
            )
        drawn = np.flatnonzero((surplus != surplus[:, :1, :1]).any(axis=(1, 2, 3)))
        if drawn.size:
            raise InputError(
                f"{self.file} must have a label for every tile that is not of one colour; there "
                f"are {n:,} labels, and tile {n + int(drawn[0])} (from 0) has a picture too. Check "
                "the labels."
            )


class _MosaicImages(ArrayImages):
    def __init__(self, tiles: Images, picture: _Picture, digest: str, *, name: str) -> None:
        super().__init__(tiles, name=name)
        self._picture = picture
        self._digest = digest

    def __copy__(self) -> _MosaicImages:
        # The state is for other processes: here a copy can share the pixels.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_array"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        grid, digest = self._picture.decoded()
        if digest != self._digest:
            raise FileError(
                f"{self._picture.file} has changed since the set was made; make it again."
            )
        self._array = grid.reshape(-1, *grid.shape[2:])[: len(self)]


def _height_and_width(tile: object) -> tuple[int, int]:
    if isinstance(tile, str):
        parts = _TILE.fullmatch(tile.strip().lower())
        if parts is None:
            raise InputError(f"tile must be a side in pixels, or HEIGHTxWIDTH; got {tile!r}.")
        sides: tuple[object, ...] = (int(parts[1]), int(parts[2] or parts[1]))
    else:
        sides = (tile, tile)
    height, width = (check_count(side, name="tile", least=LEAST_SIDE) for side in sides)
    return height, width


def _count(labels: object) -> int:
    if isinstance(labels, (str, os.PathLike)):
        return len(read_labels(labels))
    return to_array(labels, name="labels").size


def _kept(keep: object, images: ImageSet) -> NDArray[Any]:
    """Which images, as indices; that they are in range is for the set to say."""
    if isinstance(keep, (str, os.PathLike)):
        file, key = member_of(keep)
        if file.suffix.lower() != ".npz":
            raise FileError(
                f"keep must name an array of an .npz file, FILE.npz:KEY; got {os.fspath(keep)!r}."
            )
        keep = read_member(file, key)
    given = to_array(keep, name="keep")
    if given.dtype != bool:
        return given
    if given.shape != (len(images),):
        raise InputError(
            f"keep must say true or false of every image of {images.name}, shape "
            f"({len(images)},); got shape {given.shape}."
        )
    if not given.any():
        raise InputError(f"keep must leave at least one image of {images.name}; it leaves none.")
    return np.flatnonzero(given)
