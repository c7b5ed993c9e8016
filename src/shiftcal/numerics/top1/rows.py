"""Whole rows of probabilities around a given confidence of the predicted class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits, Probs
from shiftcal.numerics.row_blocks import row_blocks

# Every other class stays this fraction below the predicted one, or the argmax could move.
MARGIN = 1e-6
# What a class is worth whose probability underflowed: nothing, but evenly so.
LEAST_SHARE = 1e-200


def lowest_top1(k: int) -> float:
    """The least that the largest of ``k`` probabilities can be, a margin above ``1 / k``."""
    return 1 / (1 + (k - 1) * (1 - MARGIN))


def rows_with_top1(logits: Logits, confidence: NDArray[np.float64]) -> Probs:
    """Rows whose predicted class has the given confidence, the rest shared as the model would.

    The predicted class (the first largest logit) gets ``c``, raised to :func:`lowest_top1`; the
    others share ``1 - c`` in proportion to their softmax probabilities, none getting more than
    ``c * (1 - 1e-6)``. What a class may not have goes to those below it, again in proportion.

    Args:
        logits: ``(n, k)``.
        confidence: ``(n,)`` in [0, 1].
    """
    n, k = logits.shape
    c = np.clip(confidence, lowest_top1(k), 1.0)
    out = np.empty((n, k), dtype=np.float64)
    for rows in row_blocks(n, k):
        out[rows] = _block(logits[rows].astype(np.float64), c[rows])
    return out


def _block(z: NDArray[np.float64], c: NDArray[np.float64]) -> Probs:
    predicted = np.arange(len(z)), z.argmax(axis=1)
    z[predicted] = -np.inf
    # Relative to the second class, so that the shares are right however small all of them are.
    shares = np.exp(z - z.max(axis=1, keepdims=True))
    np.maximum(shares, LEAST_SHARE, out=shares)
    shares[predicted] = 0.0
    rest, cap = 1.0 - c, c * (1.0 - MARGIN)
    scale = rest / shares.sum(axis=1)
    over = scale > cap
    if over.any():
        scale[over] = _capped_scale(shares[over], rest[over], cap[over])
    shares *= scale[:, None]
    np.minimum(shares, cap[:, None], out=shares)
    shares[predicted] = c
    return shares


def _capped_scale(
    shares: NDArray[np.float64], rest: NDArray[np.float64], cap: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The scale at which ``sum min(cap, scale * share)`` is ``rest``, row by row.

    With the ``j`` largest shares at the cap, the scale is what is left over the sum of the other
    shares; the right ``j`` is the first for which the next share stays under the cap.
    """
    falling = -np.sort(-shares, axis=1)[:, :-1]  # the last is the predicted class, worth 0
    left = rest[:, None] - np.arange(falling.shape[1]) * cap[:, None]
    scales = left / falling[:, ::-1].cumsum(axis=1)[:, ::-1]
    fits = scales * falling <= cap[:, None]
    fits[:, -1] = True  # at the lowest confidence all are at the cap, give or take rounding
    return scales[np.arange(len(scales)), fits.argmax(axis=1)]
