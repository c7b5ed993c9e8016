"""What is summed over the rows of a block: whole numbers of ``2^-40``, in these columns.

0: p_max; 1: entropy; 2 to k + 1: ``p``; k + 2 to 2 k + 1: ``p²``; 2 k + 2: p_max²; 2 k + 3: minus
the logarithm of ``1 - p_max``. All are of the raw softmax, whatever calibration is in use. Sums of
floats depend on their order and grouping; sums of whole numbers do not, so that no batch of any
size changes a decision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 40
UNIT = 2.0**-BITS
# What is left of 1 beside p_max is taken for no less: its logarithm would be infinite.
FLOOR = 1e-6
# Features of a row that a shift is seen by.
FEATURES = ("confidence", "squared confidence", "entropy", "concentration", "log-remainder")


def n_columns(k: int) -> int:
    """Columns for ``k`` classes."""
    return 2 * k + 4


def features(sums: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums ``(..., 5)`` of the features over rows: p_max, p_max², entropy, ``Σ p²``, the last.

    Args:
        sums: ``(..., 2 k + 4)``.
    """
    k = (sums.shape[-1] - 4) // 2
    concentration = sums[..., 2 + k : 2 + 2 * k].sum(axis=-1)
    columns = (
        sums[..., 0],
        sums[..., 2 * k + 2],
        sums[..., 1],
        concentration,
        sums[..., 2 * k + 3],
    )
    return UNIT * np.stack(columns, axis=-1)
