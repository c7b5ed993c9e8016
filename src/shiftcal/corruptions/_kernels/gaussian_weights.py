"""The weights of a sampled and truncated Gaussian."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def gaussian_weights(sigma: float, truncate: float) -> NDArray[np.float32]:
    """Weights ``exp(-k**2 / (2 sigma**2))`` for ``|k| <= r``, with sum 1; ``(2 r + 1,)``.

    The radius is ``r = int(truncate * sigma + 1/2)``, as in ``scipy.ndimage``; they are normalised
    in double precision. With ``sigma`` 0 there is one weight, 1.
    """
    if sigma <= 0:
        return np.ones(1, np.float32)
    radius = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    return (weights / weights.sum()).astype(np.float32)
