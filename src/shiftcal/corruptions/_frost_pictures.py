"""Pictures of frost, laid one behind the other for a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Pictures(NamedTuple):
    """Pictures of different sizes in one line of memory.

    Attributes:
        texels: Their values, flat uint8, read-only.
        starts: Where each begins, ``(k,)``.
        sizes: Their heights and widths in pixels, ``(k, 2)``.
    """

    texels: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


def packed(pictures: Sequence[NDArray[np.uint8]]) -> Pictures:
    """Copies of pictures ``(height, width, 3)``."""
    sizes = np.array([picture.shape[:2] for picture in pictures], np.int64)
    ends = np.cumsum(3 * sizes.prod(axis=1))
    texels = np.concatenate([picture.reshape(-1) for picture in pictures])
    texels.flags.writeable = False
    return Pictures(texels, np.concatenate([[0], ends[:-1]]), sizes)
