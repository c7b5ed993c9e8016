"""Likelihood of ``softmax(W x + b)`` and its slopes; ``W`` a matrix, or a vector for a diagonal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels, Probs
from shiftcal.numerics.row_blocks import row_blocks
from shiftcal.numerics.softmax import softmax

Array = NDArray[np.float64]


class Slopes(NamedTuple):
    """Mean negative log-likelihood and its derivatives.

    Attributes:
        nll: Weighted mean over the rows.
        weight: Derivative by ``W``, of its shape.
        intercept: ``(k,)`` derivative by ``b``.
    """

    nll: float
    weight: Array
    intercept: Array


def linear_scores(features: Array, weight: Array, intercept: Array) -> Array:
    """``W x + b`` for every row, ``(n, k)``; ``w * x + b`` if the weight is a vector."""
    if weight.ndim == 1:
        return features * weight + intercept
    return features @ weight.T + intercept


def linear_softmax(features: Array, weight: Array, intercept: Array) -> Probs:
    """``softmax(W x + b)`` for every row, ``(n, k)``."""
    return softmax(linear_scores(features, weight, intercept))


def nll_slopes(
    features: Array, labels: Labels, shares: Array, *, weight: Array, intercept: Array
) -> Slopes:
    """Weighted mean of ``-log softmax(W x + b)[label]`` and its derivatives.

    Args:
        features: ``(n, k)``.
        labels: ``(n,)``.
        shares: ``(n,)`` weights that sum to one.
        weight: ``(k, k)`` or ``(k,)``.
        intercept: ``(k,)``.
    """
    nll, by_weight, by_intercept = 0.0, np.zeros_like(weight), np.zeros_like(intercept)
    for rows in row_blocks(*features.shape):
        x, share = features[rows], shares[rows]
        label = np.arange(len(x)), labels[rows]
        s = linear_scores(x, weight, intercept)
        s -= s.max(axis=1, keepdims=True)
        of_label = s[label]
        np.exp(s, out=s)
        total = s.sum(axis=1)
        nll += float(share @ (np.log(total) - of_label))
        s *= (share / total)[:, None]
        s[label] -= share
        by_weight += np.einsum("ij,ij->j", s, x) if weight.ndim == 1 else s.T @ x
        by_intercept += s.sum(axis=0)
    return Slopes(nll, by_weight, by_intercept)


def separates(features: Array, labels: Labels, weight: Array, intercept: Array) -> bool:
    """Whether the label scores higher than every other class, in every row."""
    for rows in row_blocks(*features.shape):
        s = linear_scores(features[rows], weight, intercept)
        label = np.arange(len(s)), labels[rows]
        of_label = s[label]
        s[label] = -np.inf
        if (s.max(axis=1) >= of_label).any():
            return False
    return True
