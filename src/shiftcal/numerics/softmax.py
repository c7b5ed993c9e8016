"""Softmax and its relatives, in float64 whatever the logits are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits, Probs

# Elements per block: the float64 copy of a block stays in the processor's cache.
_BLOCK = 1 << 16


def softmax(logits: Logits, temperature: float = 1.0) -> Probs:
    """``exp(z / T) / sum exp(z / T)`` for every row, safe for any finite logits."""
    p = np.empty(logits.shape, dtype=np.float64)
    rows = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), rows):
        block = p[start : start + rows]
        block[:] = logits[start : start + rows]
        block -= block.max(axis=1, keepdims=True)
        block /= temperature
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)
    return p


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """``z - log sum exp(z)`` for every row: the logarithm of softmax, without its underflow."""
    z = logits.astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
    return z


def p_max(logits: Logits, temperature: float = 1.0) -> NDArray[np.float64]:
    """The largest softmax probability of every row, ``1 / sum exp((z - max z) / T)``.

    Never holds more than a block of probabilities.
    """
    confidence = np.empty(len(logits), dtype=np.float64)
    rows = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), rows):
        block = logits[start : start + rows].astype(np.float64)
        block -= block.max(axis=1, keepdims=True)
        block /= temperature
        np.exp(block, out=block)
        confidence[start : start + rows] = 1.0 / block.sum(axis=1)
    return confidence
