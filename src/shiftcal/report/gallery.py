"""Pictures of corruptions side by side: all of them at one severity, or one at all severities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from shiftcal.corruptions import Corruption, corrupt
from shiftcal.errors import require
from shiftcal.types import Images

# The sixteen in the appendix of Salvador et al., 2021.
PAPER = (
    "brightness", "contrast", "defocus_blur", "elastic_transform",
    "fog", "frost", "gaussian_blur", "gaussian_noise",
    "glass_blur", "impulse_noise", "pixelate", "saturate",
    "shot_noise", "spatter", "speckle_noise", "zoom_blur",
)  # fmt: skip
_GROUPS = ("noise", "blur", "weather", "digital", "custom")
# Sides in pixels: a smaller tile is enlarged; a row of tiles is kept within what a page shows.
_LEAST_TILE, _MOST_WIDTH = 120, 2000
_GAP = 12
_INK, _GREY, _LINE, _WHITE = "#222222", "#6b6b6b", "#cccccc", "#ffffff"


@dataclass(frozen=True)
class Tile:
    """One picture with what is written above it.

    Attributes:
        label: In plain words.
        image: ``(height, width, 3)`` uint8.
    """

    label: str
    image: Images


@dataclass(frozen=True)
class Grid:
    """Where tiles stand, in pixels of the figure.

    Attributes:
        columns: Tiles in a row.
        times: Every pixel of a tile becomes a square of this side.
        font: Size of the labels.
        cell: Width and height of a tile with its label, without gaps.
        size: Width and height of the figure.
    """

    columns: int
    times: int
    font: int
    cell: tuple[int, int]
    size: tuple[int, int]

    def corner(self, index: int) -> tuple[int, int]:
        """Left and top of the picture of a tile; its label ends above it."""
        row, column = divmod(index, self.columns)
        left = _GAP + column * (self.cell[0] + _GAP)
        return left, self.heading + row * (self.cell[1] + _GAP) + self.line

    @property
    def line(self) -> int:
        """Height of a line of text."""
        return round(1.6 * self.font)

    @property
    def heading(self) -> int:
        """Height of what stands above the tiles."""
        return self.line + 2 * _GAP


def tiles_of_all(
    image: Images, corruptions: Sequence[Corruption], *, severity: int, **options: Any
) -> list[Tile]:
    """The original image, then with each corruption, family by family.

    Args:
        image: ``(height, width, 3)`` uint8.
        corruptions: Which.
        severity: Of all of them.
        **options: ``seed`` and ``table``, as for :func:`shiftcal.corrupt`.
    """
    tiles = [Tile("original", image)]
    for one in sorted(corruptions, key=lambda one: (_GROUPS.index(one.group), one.name)):
        tiles.append(Tile(in_words(one), corrupt(image, one, severity=severity, **options)))
    return tiles


def tiles_of_one(image: Images, corruption: Corruption, **options: Any) -> list[Tile]:
    """The original image, then every severity of one corruption; arguments as above."""
    tiles = [Tile("original", image)]
    for severity in range(1, corruption.severities + 1):
        corrupted = corrupt(image, corruption, severity=severity, **options)
        tiles.append(Tile(f"severity {severity}", corrupted))
    return tiles


def in_words(corruption: Corruption) -> str:
    """Its name in words, with its variant."""
    return corruption.description.replace("_", " ")


def draw(tiles: Sequence[Tile], *, heading: str, one_row: bool = False) -> Any:
    """A Pillow image of all tiles in rows, on white, under a heading.

    No pixel of a tile is mixed with another: small tiles are enlarged by a whole number.

    Args:
        tiles: Of one size.
        heading: One line.
        one_row: Whether all stand in one row, however wide.
    """
    pillow = require("PIL.Image", extra="images", needed_by="a gallery")
    drawing = require("PIL.ImageDraw", extra="images", needed_by="a gallery")
    fonts = require("PIL.ImageFont", extra="images", needed_by="a gallery")
    grid = layout(tiles, one_row=one_row)
    font = fonts.load_default(grid.font)
    width = max(grid.size[0], math.ceil(font.getlength(heading)) + 2 * _GAP)
    figure = pillow.new("RGB", (width, grid.size[1]), _WHITE)
    pen = drawing.Draw(figure)
    pen.text((_GAP, _GAP), heading, fill=_GREY, font=font)
    for index, tile in enumerate(tiles):
        left, top = grid.corner(index)
        pen.text((left, top - 0.4 * grid.font), tile.label, fill=_INK, font=font, anchor="ls")
        pixels = tile.image.repeat(grid.times, axis=0).repeat(grid.times, axis=1)
        right, bottom = left + pixels.shape[1], top + pixels.shape[0]
        pen.rectangle((left - 1, top - 1, right, bottom), outline=_LINE)  # white on white has edges
        figure.paste(pillow.fromarray(pixels), (left, top))
    return figure


def layout(tiles: Sequence[Tile], *, one_row: bool) -> Grid:
    """How large everything is and where it stands, so that no label is cut."""
    fonts = require("PIL.ImageFont", extra="images", needed_by="a gallery")
    height, width = tiles[0].image.shape[:2]
    times = max(1, math.ceil(_LEAST_TILE / max(height, width)))
    size = max(14, min(24, times * width // 13))
    font = fonts.load_default(size)
    label = max(math.ceil(font.getlength(tile.label)) for tile in tiles)
    cell = (max(times * width, label), times * height + round(1.6 * size))
    columns = len(tiles)
    if not one_row:
        # Up to six in a row, as few empty places as possible in the last one, then the widest.
        most = max(1, min(6, len(tiles), (_MOST_WIDTH - _GAP) // (cell[0] + _GAP)))
        columns = min(range(most, max(0, most - 3), -1), key=lambda count: -len(tiles) % count)
    rows = math.ceil(len(tiles) / columns)
    grid = Grid(columns, times, size, cell, (0, 0))
    total = (_GAP + columns * (cell[0] + _GAP), grid.heading + rows * (cell[1] + _GAP))
    return replace(grid, size=total)
