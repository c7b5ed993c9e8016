"""Softmax and its relatives, in float64 whatever the logits are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits, Probs

# Elements per block: the float64 copy of a block stays in the processor's cache.
_BLOCK = 1 << 16


def softmax(logits: Logits, temperature: float = 1.0) -> Probs:
    """``exp(z / T) / sum exp(z / T)`` for every row, safe for any finite logits.

    The first largest logit of a row has its first largest probability, however near the next is.
    """
    p = np.empty(logits.shape, dtype=np.float64)
    rows = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), rows):
        block = p[start : start + rows]
        block[:] = logits[start : start + rows]
        top = block.argmax(axis=1)
        block -= np.take_along_axis(block, top[:, None], axis=1)
        block /= temperature
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)
        keep_top(block, top)
    return p


def keep_top(probs: Probs, top: NDArray[np.intp]) -> None:
    """Raise the class ``top`` of every row above all others, in place, where rounding tied them.

    Logits that differ in their last digits give probabilities that do not; the next number above
    the largest is then as good a value as that one, and leaves the predicted class as it was.

    Args:
        probs: ``(n, k)``.
        top: ``(n,)`` the class that would be the first largest of its row but for rounding.
    """
    lost = np.flatnonzero(probs.argmax(axis=1) != top)
    probs[lost, top[lost]] = np.nextafter(probs[lost].max(axis=1), 1.0)


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
