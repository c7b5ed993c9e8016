"""Separable blurs of whole images."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.separable_kernels import BAND, load, smooth
from shiftcal.corruptions._kernels.smoothing_plan import RUN
from shiftcal.numerics._jit import compiled


@compiled()
def blur_images(images: Any, out: Any, plan: Any) -> None:
    """Smooth images by columns and rows.

    Args:
        images: ``(m, h, 3 w)`` uint8.
        out: ``(m, h, 3 w)`` uint8.
        plan: A ``Smoothing``.
    """
    m, height, width = images.shape
    padded = len(plan.places)
    plane = np.empty(len(plan.rows) * width, np.uint16)
    middle = np.empty((min(BAND, height), padded), np.uint16)
    sums = np.empty(max(padded, RUN), np.uint16)
    for j in range(m):
        load(plane, images[j], plan.rows)
        smooth(out[j], plane, plan, middle, sums)
