"""Losses row by row; a metric is their mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Confidence, Correct, Labels, Probs

# What float32 still tells from zero. A probability of zero would make the mean infinite.
FLOOR = float(np.finfo(np.float32).tiny)


def log_losses(probs: Probs, labels: Labels) -> NDArray[np.float64]:
    """``-log max(p_y, 1.2e-38)``, so at most 87.34 for any row."""
    return -np.log(np.maximum(probs[np.arange(len(labels)), labels], FLOOR))


def square_losses(probs: Probs, labels: Labels) -> NDArray[np.float64]:
    """``sum_k (p_k - [y = k])^2``, from 0 to 2."""
    of_label = probs[np.arange(len(labels)), labels]
    others = np.einsum("ij,ij->i", probs, probs) - of_label**2
    # Rounding may leave what should be zero a little below it.
    return np.maximum(others, 0.0) + (1.0 - of_label) ** 2


def top1_square_losses(confidence: Confidence, correct: Correct) -> NDArray[np.float64]:
    """``(c - r)^2``, from 0 to 1."""
    return (confidence.astype(np.float64) - correct) ** 2


def hits(probs: Probs, labels: Labels) -> NDArray[np.bool_]:
    """Whether the first largest probability is the label's."""
    return probs.argmax(axis=1) == labels
