"""Pixelation."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.corruptions.base import Corruption, Keys, Settings


class _Plan(NamedTuple):
    shape: tuple[int, int]
    down: NDArray[np.int64]
    across: NDArray[np.int64]
    shown: NDArray[np.int64]
    columns: NDArray[np.uint64]


@final
class Pixelate(Corruption):
    """Reduced to the means of boxes, and enlarged again so that each shows as one large pixel.

    A setting is the fraction ``c`` of the side that is left: height and width are reduced to
    ``int(c * height)`` and ``int(c * width)``, each at least 1. Equal in every bit to Pillow's
    ``resize(..., BOX)`` down and up, whose ways are kept: the means of rows are rounded to whole
    levels before those of columns are taken (Pillow 13 takes those of columns first where an
    image is much higher than wide; the versions before it, of which the published sets were made,
    never do), boxes have whole pixels only, so their sizes differ, and rounding decides whether a
    pixel on the border of two boxes counts in one, in both, or in none.
    """

    group = "digital"
    random = False
    settings = Settings(
        cifar=((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
        tiny_imagenet=((0.9,), (0.8,), (0.7,), (0.6,), (0.5,)),
        imagenet=((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
    )

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        small_height, small_width = (max(1, int(side * setting[0])) for side in (height, width))
        rows, columns = _boxes(small_height, height)[:, 0], _boxes(small_width, width)[:, 0]
        return _Plan(
            (height, 3 * width),
            _boxes(height, small_height),
            _boxes(width, small_width),
            np.searchsorted(rows, np.arange(small_height + 1)),
            3 * columns.astype(np.uint64),
        )

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.pixelate_kernels import enlarge_pixels

        enlarge_pixels(images.reshape(-1), out.reshape(-1), *plan)


def _boxes(side: int, boxes: int) -> NDArray[np.int64]:
    """First value of every box and their number, ``(boxes, 2)``, in Pillow's arithmetic.

    Boxes are ``side / boxes`` wide, but not below 1; a value is in a box if its centre is, the
    right border being part of the box. Rounding decides for a centre on a border: it can be in
    both boxes or in none, and so it is in Pillow.
    """
    step = side / boxes
    width = max(step, 1.0)
    centres = (np.arange(boxes) + 0.5) * step
    first = np.maximum((centres - 0.5 * width + 0.5).astype(np.int64), 0)
    end = np.minimum((centres + 0.5 * width + 0.5).astype(np.int64), side)
    left = (first - centres + 0.5) * (1.0 / width)
    right = (end - 1 - centres + 0.5) * (1.0 / width)
    first, end = first + (left <= -0.5), end - (right > 0.5)
    return np.stack([first, end - first], axis=1)
