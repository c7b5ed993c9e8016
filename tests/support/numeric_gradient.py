"""Gradients by central differences, of functions that know nothing of torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def numeric_gradient(
    function: Callable[[NDArray[np.float64]], float], x: NDArray[np.float64], step: float = 1e-5
) -> NDArray[np.float64]:
    """``(f(x + h) - f(x - h)) / 2h`` for every entry; wrong by h² times the third derivative."""
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        gradient[place] = (function(up) - function(down)) / (2 * step)
    return gradient
