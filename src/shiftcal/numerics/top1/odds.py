"""The confidence of the predicted class, kept exact where it rounds to one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits
from shiftcal.numerics.row_blocks import row_blocks


def top1_log_odds(logits: Logits) -> NDArray[np.float64]:
    """``log(c / (1 - c))`` of every row, ``c`` the largest softmax probability.

    Computed as the largest logit minus the log-sum-exp of the others, which keeps its digits
    where ``1 - c`` has none left.
    """
    odds = np.empty(len(logits), dtype=np.float64)
    for rows in row_blocks(*logits.shape):
        z = logits[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        z[np.arange(len(z)), z.argmax(axis=1)] = -np.inf
        second = z.max(axis=1, keepdims=True)
        odds[rows] = -second[:, 0] - np.log(np.exp(z - second).sum(axis=1))
    return odds
