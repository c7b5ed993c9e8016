"""Compiled parts of a discriminator. Importing this file imports numba: only in functions.

What is not finite stays so: a training that diverges must be seen to. Loops run along the features
of a row, eight at a time where the processor can. To call a kernel takes longer than most of what
they do, so each does all that lies between two matrix products.

A hidden layer is given as the weights and biases of its normalisation, ``(d,)`` each; its running
means and variances, which move towards those of the rows; and how many batches these have seen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._jit import compiled

_PLAIN = {"error_model": "numpy"}


@compiled(**_PLAIN)
def first_layer(
    products: Any, probabilities: Any, bias: Any, layer: Any, rates: Any, found: Any, out: Any
) -> None:
    """The first hidden layer, from ``z[i, h] = bias[h] + sum_k products[i, h, k] p[i, k]``.

    Args:
        products: ``(n, d * k)``, the classes of each feature next to one another.
        probabilities: ``(n, k)``.
        bias: ``(d,)``.
        layer: As the file describes it.
        rates: What is added to a variance, and how far running statistics move.
        found: ``(n + 2, d)`` gets ``z``, the means of its columns, and their inverse deviations.
        out: ``(n, d)`` gets the layer.
    """
    n = len(out)
    _contract(products, probabilities, bias, found[:n])
    _normalise(found[:n], layer, rates, found[n], found[n + 1], out)


@compiled(**_PLAIN)
def told_apart(
    z: Any, layer: Any, rates: Any, last: Any, weights: Any, back: Any, slopes: Any, of_last: Any
) -> Any:
    """The second hidden layer, the logits, the mean of ``w log(1 + exp(∓logit))``, and back.

    The first half of the rows should be positive.

    Args:
        z: ``(n, d)``.
        layer: As the file describes it.
        rates: As for :func:`first_layer`.
        last: The last weights, ``(d,)``, and the last bias, ``(1,)``.
        weights: ``(n,)``, or ``(0,)`` for ones.
        back: ``(n, d)`` gets the gradient by ``z``.
        slopes: ``(3, d)`` gets those by weights and biases of the layer, and by the second bias.
        of_last: ``(d + 1,)`` gets those by the last weights and bias.
    """
    n, d = z.shape
    out, stats = np.empty_like(z), np.empty((2, d), z.dtype)
    _normalise(z, layer, rates, stats[0], stats[1], out)
    value = 0.0
    of_last[:] = 0
    for i in range(n):
        logit = float(last[1][0]) + _dot(out[i], last[0])
        sign = -1.0 if i < n // 2 else 1.0
        w = weights[i] / n if len(weights) > 0 else 1.0 / n
        small = math.exp(-abs(logit))
        value += w * (max(sign * logit, 0.0) + math.log1p(small) + 0 * logit)
        share = (1.0 if sign * logit >= 0 else small) / (1 + small)
        slope = z.dtype.type(w * sign * share)
        for c in range(d):
            of_last[c] += slope * out[i, c]
            back[i, c] = slope * last[0][c]
        of_last[d] += slope
    _normalise_back(z, out, layer[0], stats, slopes, back)
    return value


@compiled(**_PLAIN)
def first_back(
    found: Any, out: Any, weight: Any, probabilities: Any, slopes: Any, back: Any, each: Any
) -> None:
    """The gradients of :func:`first_layer`.

    Args:
        found: As it was found.
        out: As it was found.
        weight: Those of the normalisation.
        probabilities: ``(n, k)``.
        slopes: ``(3, d)`` gets the gradients by weights and biases of the layer, and by ``bias``.
        back: ``(n, d)`` has the gradient by ``out``, and is used up.
        each: ``(n, d * k)`` gets the gradient by ``products``.
    """
    n = len(out)
    _normalise_back(found[:n], out, weight, found[n:], slopes, back)
    k = probabilities.shape[1]
    for i in range(n):
        for h in range(out.shape[1]):
            for c in range(k):
                each[i, h * k + c] = back[i, h] * probabilities[i, c]


@njit(**_PLAIN, fastmath={"reassoc", "contract"})
def _contract(products: Any, probabilities: Any, bias: Any, z: Any) -> None:
    k = probabilities.shape[1]
    for i in range(z.shape[0]):
        for h in range(z.shape[1]):
            total = bias[h]
            for c in range(k):
                total += products[i, h * k + c] * probabilities[i, c]
            z[i, h] = total


@njit(**_PLAIN, fastmath={"reassoc", "contract"})
def _dot(x: Any, y: Any) -> Any:
    total = x.dtype.type(0)
    for c in range(x.shape[0]):
        total += x[c] * y[c]
    return total


@njit(**_PLAIN)
def _normalise(z: Any, layer: Any, rates: Any, mean: Any, inverse: Any, out: Any) -> None:
    """Batch normalisation in training, then ReLU."""
    n, d = z.shape
    zero = z.dtype.type(0)
    weight, bias, running_mean, running_variance, batches = layer
    batches[()] += 1
    _moments(z, mean, inverse)
    for c in range(d):
        running_mean[c] += rates[1] * (mean[c] - running_mean[c])
        running_variance[c] += rates[1] * (inverse[c] / (n - 1) - running_variance[c])
        inverse[c] = 1 / np.sqrt(inverse[c] / n + rates[0])
    for r in range(n):
        for c in range(d):
            y = (z[r, c] - mean[c]) * (inverse[c] * weight[c]) + bias[c]
            out[r, c] = zero if y <= zero else y


@njit(**_PLAIN)
def _normalise_back(z: Any, out: Any, weight: Any, stats: Any, slopes: Any, back: Any) -> None:
    """From the gradient by ``out`` to that by ``z``, in place; the third slope is its sum."""
    n, d = z.shape
    zero = z.dtype.type(0)
    mean, inverse = stats[0], stats[1]
    slopes[:] = 0
    for r in range(n):
        for c in range(d):
            g = zero if out[r, c] <= zero else back[r, c]
            back[r, c] = g
            slopes[0, c] += g * ((z[r, c] - mean[c]) * inverse[c])
            slopes[1, c] += g
    one = z.dtype.type(1) / z.dtype.type(n)
    for r in range(n):
        for c in range(d):
            away = (z[r, c] - mean[c]) * inverse[c]
            left = back[r, c] - (slopes[1, c] + away * slopes[0, c]) * one
            back[r, c] = left * (inverse[c] * weight[c])
            slopes[2, c] += back[r, c]


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
