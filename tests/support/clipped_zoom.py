"""The published generators' enlargement, with scipy, for heights and widths that differ."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import zoom


def clipped_zoom(image, factor):
    """The middle of an image ``(h, w, c)``, enlarged and trimmed to the image's size."""
    sides = image.shape[:2]
    cut = [int(np.ceil(side / factor)) for side in sides]
    top, left = ((side - part) // 2 for side, part in zip(sides, cut, strict=True))
    middle = image[top : top + cut[0], left : left + cut[1]]
    large = zoom(middle, (factor, factor, 1), order=1)
    top, left = ((much - side) // 2 for much, side in zip(large.shape[:2], sides, strict=True))
    return large[top : top + sides[0], left : left + sides[1]]
