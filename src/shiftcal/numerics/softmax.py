"""Softmax, log-sum-exp, entropy and losses of rows of logits, in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.blocks import LARGE, kernel_for, kernels, row_blocks
from shiftcal.types import Confidence, Correct, Floats, Labels, Logits, Probs

# --------------------------------------------------------------------------------------
# Softmax and its relatives, in float64 whatever the logits are.
# --------------------------------------------------------------------------------------


def softmax(logits: Logits, temperature: float = 1.0) -> Probs:
    """``exp(z / T) / sum exp(z / T)`` for every row, safe for any finite logits.

    The first largest logit of a row has its first largest probability, however near the next is.
    """
    p = np.empty(logits.shape, dtype=np.float64)
    for rows in row_blocks(*logits.shape):
        block = p[rows]
        top = _shifted(logits[rows], temperature, block)
        np.exp(block, out=block)
        kernels.normalize_rows(block, top)
    return p


def softmax_blocks(logits: Logits) -> Iterator[tuple[slice, Probs]]:
    """Rows and their softmax, some at a time."""
    for rows in row_blocks(*logits.shape, size=LARGE // 4):
        yield rows, softmax(logits[rows])


def _shifted(logits: Logits, temperature: float, out: NDArray[np.float64]) -> NDArray[np.int64]:
    """Fill ``out`` with ``(z - max z) / T``; returns where each row is largest first."""
    z = np.ascontiguousarray(logits, np.float32 if logits.dtype == np.float32 else np.float64)
    top = np.empty(len(z), np.int64)
    kernel_for("shift_rows", z)(z, temperature, out, top)
    return top


def top_of_rows(rows: Floats) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """``rows.argmax(axis=1)`` and ``rows.max(axis=1)`` of finite numbers, at once."""
    x = np.ascontiguousarray(rows, np.float32 if rows.dtype == np.float32 else np.float64)
    top, largest = np.empty(len(x), np.int64), np.empty(len(x))
    kernel_for("largest_of_rows", x)(x, top, largest)
    return top, largest


def sum_of_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """``rows.sum(axis=1)``, to the bit, faster where rows are short."""
    sums = np.empty(len(rows))
    kernels.sum_rows(rows, sums)
    return sums


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
    for rows in row_blocks(*logits.shape):
        block = np.empty((len(confidence[rows]), logits.shape[1]))
        _shifted(logits[rows], temperature, block)
        np.exp(block, out=block)
        confidence[rows] = 1.0 / sum_of_rows(block)
    return confidence


# --------------------------------------------------------------------------------------
# Entropy of softmax rows.
# --------------------------------------------------------------------------------------


def entropy(logits: Logits) -> NDArray[np.float64]:
    """``-sum p log p`` in nats with ``p = softmax(z)``, for every row.

    Good to a relative 1e-13 however confident a row is: with ``d = z - max z`` it is
    ``log(1 + s) - sum exp(d) d / (1 + s)``, ``s`` the sum of ``exp(d)`` over all classes but the
    first largest, which is never rounded against 1.
    """
    found = np.empty(len(logits), dtype=np.float64)
    for rows in row_blocks(*logits.shape):
        d = logits[rows].astype(np.float64)
        top = d.argmax(axis=1)[:, None]
        d -= np.take_along_axis(d, top, axis=1)
        e = np.exp(d)
        np.put_along_axis(e, top, 0.0, axis=1)
        rest = e.sum(axis=1)
        found[rows] = np.log1p(rest) - np.einsum("ij,ij->i", e, d) / (1 + rest)
    return found


# --------------------------------------------------------------------------------------
# Losses row by row; a metric is their mean.
# --------------------------------------------------------------------------------------

# The least that float32 separates from zero. A probability of zero would make the mean infinite.
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
