"""What is known of the samples: labels, weights, and how sure and how right a prediction was."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks.arrays import blocks, finite, to_array, vector
from shiftcal._checks.objects import plain
from shiftcal._types import Confidence, Correct, Labels, Weights
from shiftcal.errors import InputError

ABOVE_ONE = 1e-6


def check_labels(labels: object, *, n: int, k: int) -> Labels:
    """Integer labels ``(n,)`` in ``0..k-1``."""
    y = plain(to_array(labels, name="labels"), "labels")
    if y.ndim == 2 and y.shape == (n, k):
        raise InputError(
            f"labels must be class indices of shape ({n},); got shape {y.shape}. "
            "If they are one-hot, pass labels.argmax(axis=1)."
        )
    if y.ndim != 1:
        raise InputError(
            f"labels must have shape ({n},); got shape {y.shape}. Pass labels.ravel() "
            "if it is a column."
        )
    if y.dtype.kind not in "iufb":
        raise InputError(
            f"labels must be class indices 0..{k - 1}; got values like {y.flat[0]!r}. "
            "Map names to their column first, for instance with "
            "np.array([list(classes).index(name) for name in labels])."
            if y.size
            else f"labels must be class indices 0..{k - 1}; got none."
        )
    if len(y) != n:
        raise InputError(
            f"labels must have one entry per row: {n} rows, {len(y)} labels. "
            "Check that both come from the same samples in the same order."
        )
    _refuse_fractions(y)
    out = y.astype(np.intp, copy=False)
    low, high = int(out.min()), int(out.max())
    if low < 0 or high >= k:
        hint = " If yours start at 1, pass labels - 1." if low == 1 and high == k else ""
        raise InputError(
            f"labels must lie in 0..{k - 1}, one per column of logits; "
            f"these go from {low} to {high}.{hint}"
        )
    return out


def check_weights(sample_weight: object, *, n: int) -> Weights | None:
    """Weights ``(n,)``, finite, non-negative and not all zero; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    name = "sample_weight"
    w = finite(vector(sample_weight, name=name, n=n), name).astype(np.float64)
    if w.min() < 0:
        raise InputError(
            f"sample_weight must not be negative; row {int(w.argmin())} has {w.min():.4g}."
        )
    if not w.any():
        raise InputError("sample_weight must not be zero everywhere; there is nothing to fit then.")
    return w


def check_confidence(confidence: object, *, name: str = "confidence") -> Confidence:
    """Confidences ``(n,)`` in [0, 1], in float32 or float64.

    A softmax in float32 can give 1.0000001: what exceeds 1 by no more than 1e-6 is taken as 1.
    """
    c = vector(_not_rows(confidence, name), name=name)
    # One look, block by block, decides everything: a NaN makes both ends NaN.
    ends = np.array([(block.min(), block.max()) for _, block in blocks(c)])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    if low >= 0 and 1 < high <= 1 + ABOVE_ONE:
        return np.minimum(c, 1)
    if not (low >= 0 and high <= 1):
        finite(c, name)
        raise InputError(
            f"{name} must lie in [0, 1]; these go from {low:.4g} to {high:.4g}. "
            "Pass the probability of the predicted class, as a fraction."
        )
    return c


def _not_rows(confidence: object, name: str) -> NDArray[Any]:
    array = to_array(confidence, name=name)
    if array.ndim == 2 and array.shape[1] > 1:
        raise InputError(
            f"{name} must have shape (n,), the probability of the predicted class; got shape "
            f"{array.shape}. From whole rows: probs.max(axis=1), and correct is "
            "probs.argmax(axis=1) == labels."
        )
    return array


def check_correct(correct: object, *, n: int) -> Correct:
    """Correctness ``(n,)`` of booleans, or of zeros and ones."""
    r = to_array(correct, name="correct")
    if r.shape != (n,):
        raise InputError(
            f"correct must have one entry per confidence, shape ({n},); got shape {r.shape}."
        )
    if r.dtype == np.bool_:
        return r
    if r.dtype.kind not in "iuf" or not ((r == 0) | (r == 1)).all():
        raise InputError(
            "correct must hold True and False (or 1 and 0), whether the predicted class was "
            "right. From labels: correct = probs.argmax(axis=1) == labels."
        )
    return r.astype(np.bool_)


def _refuse_fractions(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.floor(y)).all()):
        bad = int(np.argmax(~np.isfinite(y) | (y != np.floor(y))))
        raise InputError(f"labels must be whole numbers; entry {bad} is {y[bad]}.")
