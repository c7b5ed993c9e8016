"""Compiled parts of a discriminator. Importing this file imports numba: only in functions.

What is not finite stays so: a training that diverges must be seen to. Loops run along the features
of a row, eight at a time where the processor can.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._jit import compiled

_PLAIN = {"error_model": "numpy"}


@compiled(**_PLAIN, fastmath={"reassoc", "contract"})
def contract(products: Any, probabilities: Any, bias: Any, out: Any) -> None:
    """``out[i, h] = bias[h] + sum_k products[i, h, k] probabilities[i, k]``."""
    n, width = out.shape
    k = probabilities.shape[1]
    for i in range(n):
        for h in range(width):
            total = bias[h]
            for c in range(k):
                total += products[i, h * k + c] * probabilities[i, c]
            out[i, h] = total


@compiled(**_PLAIN)
def expand(grad: Any, probabilities: Any, out: Any) -> None:
    """``out[i, h, k] = grad[i, h] probabilities[i, k]``, the last two in one axis."""
    n, width = grad.shape
    k = probabilities.shape[1]
    for i in range(n):
        for h in range(width):
            for c in range(k):
                out[i, h * k + c] = grad[i, h] * probabilities[i, c]


@compiled(**_PLAIN)
def normalise(
    z: Any, scale: Any, running: Any, eps: float, momentum: float, stats: Any, out: Any
) -> None:
    """Batch normalisation in training, then ReLU.

    Args:
        z: ``(n, d)``.
        scale: Weights and biases, ``(d,)`` each.
        running: Mean and variance, ``(d,)`` each, which move towards those of the rows.
        eps: What is added to a variance.
        momentum: How far running statistics move.
        stats: ``(2, d)`` gets the means and the inverse deviations.
        out: ``(n, d)``.
    """
    n, d = z.shape
    zero = z.dtype.type(0)
    mean, inverse = stats[0], stats[1]
    _moments(z, mean, inverse)
    for c in range(d):
        running[0][c] += momentum * (mean[c] - running[0][c])
        running[1][c] += momentum * (inverse[c] / (n - 1) - running[1][c])
        inverse[c] = 1 / np.sqrt(inverse[c] / n + eps)
    for r in range(n):
        for c in range(d):
            y = (z[r, c] - mean[c]) * (inverse[c] * scale[0][c]) + scale[1][c]
            out[r, c] = zero if y <= zero else y


@compiled(**_PLAIN)
def normalise_back(
    grad: Any, z: Any, out: Any, weight: Any, stats: Any, slopes: Any, back: Any
) -> None:
    """The gradients of :func:`normalise`.

    Args:
        grad: That of ``out``.
        z: As it was given.
        out: As it was found.
        weight: As it was given.
        stats: As they were found.
        slopes: ``(2, d)`` gets the gradients of weight and bias.
        back: ``(n, d)`` gets that of ``z``.
    """
    n, d = z.shape
    zero = z.dtype.type(0)
    mean, inverse = stats[0], stats[1]
    slopes[:] = 0
    for r in range(n):
        for c in range(d):
            g = zero if out[r, c] <= zero else grad[r, c]
            back[r, c] = g
            slopes[0, c] += g * ((z[r, c] - mean[c]) * inverse[c])
            slopes[1, c] += g
    one = z.dtype.type(1) / z.dtype.type(n)
    for r in range(n):
        for c in range(d):
            away = (z[r, c] - mean[c]) * inverse[c]
            left = back[r, c] - (slopes[1, c] + away * slopes[0, c]) * one
            back[r, c] = left * (inverse[c] * weight[c])


@compiled(**_PLAIN)
def told_apart(logits: Any, weights: Any, slopes: Any) -> Any:
    """The mean of ``w log(1 + exp(∓z))``, where the first half should be positive.

    Args:
        logits: ``(n,)``.
        weights: ``(n,)``, or ``(0,)`` for ones.
        slopes: ``(n,)`` gets the gradient.
    """
    n = logits.shape[0]
    value = 0.0
    for i in range(n):
        z = float(logits[i])
        sign = -1.0 if i < n // 2 else 1.0
        w = weights[i] / n if weights.shape[0] > 0 else 1.0 / n
        small = math.exp(-abs(z))
        value += w * (max(sign * z, 0.0) + math.log1p(small) + 0 * z)
        share = (1.0 if sign * z >= 0 else small) / (1 + small)
        slopes[i] = w * sign * share
    return value


@njit(**_PLAIN)
def _moments(rows: Any, mean: Any, squares: Any) -> None:
    """Means, and sums of squares around them; what the first mean lost is put right."""
    n, d = rows.shape
    one = rows.dtype.type(1) / rows.dtype.type(n)
    rest = np.zeros(d, rows.dtype)
    mean[:] = 0
    squares[:] = 0
    for r in range(n):
        for c in range(d):
            mean[c] += rows[r, c]
    for c in range(d):
        mean[c] *= one
    for r in range(n):
        for c in range(d):
            away = rows[r, c] - mean[c]
            rest[c] += away
            squares[c] += away * away
    for c in range(d):
        mean[c] += rest[c] * one
        squares[c] -= rest[c] * rest[c] * one
