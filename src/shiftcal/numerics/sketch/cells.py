"""Cells that confidences fall into: of equal width in the middle, ever finer towards 0 and 1.

With ``d`` the distance to the nearer end and ``p`` the precision, a cell is ``2^-(p+6)`` wide where
``d > 1/64``. Nearer to the end every octave ``(2^-j, 2^-(j-1)]`` of ``d``, for ``j = 7..25``, is
cut into ``2^p`` cells; what is nearer than ``2^-25`` is one cell (float32 knows nothing between
that and 1), and exactly 0 and exactly 1 have cells of their own, because a float32 softmax gives
many ones. Cells hold their upper end. Only bits of floats and powers of two are used, so a
confidence has the same cell on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats

_OCTAVES = range(7, 26)
_MANTISSA = 52
_EXPONENT_BIAS = 1023


def n_cells(precision: int) -> int:
    """Number of cells."""
    return 2 * (2 + (len(_OCTAVES) << precision) + (31 << precision))


def cell_of(confidence: Floats, precision: int) -> NDArray[np.int64]:
    """The cell of each confidence; a greater confidence is never in a lower cell."""
    c = confidence.astype(np.float64)
    above = c > 0.5
    distance = np.where(above, 1.0 - c, c)  # exact: 1 - c is a float wherever c is above one half
    # One bit less, below one half, closes cells at their upper end as the mirror does above it.
    pattern = distance.view(np.int64) - ~above
    octaves = pattern >> (_MANTISSA - precision)
    octaves -= (_EXPONENT_BIAS - _OCTAVES[-1]) << precision
    step = np.maximum(octaves, -1) + 2
    middle = pattern >= _pattern_of(1 / 64)
    even = (pattern[middle].view(np.float64) * 2.0 ** (precision + 6)).astype(np.int64)
    step[middle] = even + (2 + ((len(_OCTAVES) - 1) << precision))
    step[distance == 0] = 0
    return np.where(above, n_cells(precision) - 1 - step, step)


def _pattern_of(x: float) -> int:
    return int(np.float64(x).view(np.int64))
