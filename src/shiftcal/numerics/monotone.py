"""The non-decreasing sequence nearest to given values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def non_decreasing(
    values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The non-decreasing ``f`` of least ``sum w_i (f_i - v_i)^2``, by pooling neighbours.

    Neighbours that fall are replaced by their weighted mean until none does.

    Args:
        values: ``(n,)``.
        weights: ``(n,)``, above 0.
    """
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, size = value, weight, 1
        while blocks and blocks[-1][0] >= mean:
            before, its_mass, its_size = blocks.pop()
            mean = (before * its_mass + mean * mass) / (its_mass + mass)
            mass, size = mass + its_mass, size + its_size
        blocks.append((mean, mass, size))
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks])
