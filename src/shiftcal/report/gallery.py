"""Pictures of corruptions side by side: all of them at one severity, or one at all severities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shiftcal.corruptions import Corruption, corrupt
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


Tile = tuple[str, Images]


def tiles_of(
    image: Images, corruptions: Sequence[Corruption], *, severity: int | None, **options: Any
) -> list[Tile]:
    """The original image, then with each corruption, family by family, each with its label.

    Args:
        image: ``(height, width, 3)`` uint8.
        corruptions: Which.
        severity: Of all of them; ``None`` for all severities of the first.
        **options: ``seed`` and ``table``, as for :func:`shiftcal.corrupt`.
    """
    if severity is None:
        steps = range(1, corruptions[0].severities + 1)
        shown = [(f"severity {step}", corruptions[0], step) for step in steps]
    else:
        order = sorted(corruptions, key=lambda one: (_GROUPS.index(one.group), one.name))
        shown = [(in_words(one), one, severity) for one in order]
    corrupted = ((label, corrupt(image, one, severity=s, **options)) for label, one, s in shown)
    return [("original", image), *corrupted]


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
    from PIL import Image, ImageDraw, ImageFont

    height, width = tiles[0][1].shape[:2]
    times = max(1, math.ceil(_LEAST_TILE / max(height, width)))
    size = max(14, min(24, times * width // 13))
    font, line = ImageFont.load_default(size), round(1.6 * size)
    label = max(math.ceil(font.getlength(text)) for text, _ in tiles)
    across, down = max(times * width, label) + _GAP, times * height + line + _GAP
    columns = len(tiles)
    if not one_row:
        # Up to six in a row, as few empty places as possible in the last one, then the widest.
        most = max(1, min(6, len(tiles), (_MOST_WIDTH - _GAP) // across))
        columns = min(range(most, max(0, most - 3), -1), key=lambda count: -len(tiles) % count)
    top = line + 2 * _GAP
    total = max(_GAP + columns * across, math.ceil(font.getlength(heading)) + 2 * _GAP)
    figure = Image.new("RGB", (total, top + math.ceil(len(tiles) / columns) * down), _WHITE)
    pen = ImageDraw.Draw(figure)
    pen.text((_GAP, _GAP), heading, fill=_GREY, font=font)
    for index, (text, image) in enumerate(tiles):
        row, column = divmod(index, columns)
        x, y = _GAP + column * across, top + row * down + line
        pen.text((x, y - 0.4 * size), text, fill=_INK, font=font, anchor="ls")
        pixels = image.repeat(times, axis=0).repeat(times, axis=1)
        edges = (x - 1, y - 1, x + times * width, y + times * height)
        pen.rectangle(edges, outline=_LINE)  # white on white has edges
        figure.paste(Image.fromarray(pixels), (x, y))
    return figure
