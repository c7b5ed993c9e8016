"""Compiled sums of joint discrepancies. Importing this file imports numba: only in functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from shiftcal.numerics._jit import compiled
from shiftcal.numerics.temperature.softmax_kernels import exp2

_LOG2_E = 1.4426950408889634


@compiled(error_model="numpy")
def joint_discrepancy(
    products: Any, outputs: Any, weights: Any, rates: Any, pulls: Any, output_pulls: Any
) -> Any:
    """The sum over all pairs of kernel times weight, and what its gradient is made of.

    The features' kernel is the sum of five Gaussians of which each has half the variance of the one
    before, so that each is the square of it. What is not finite makes the sum so.

    Args:
        products: Inner products of the features, ``(n, n)``.
        outputs: Those of the outputs.
        weights: Of the pairs, symmetric.
        rates: Of the outputs' kernel; of the features' widest kernel, times the sum of all squared
            distances; and the least that this sum counts.
        pulls: ``(n, n)`` gets the matrix which, times the features, is their gradient.
        output_pulls: The same for the outputs.
    """
    n = products.shape[0]
    real = products.dtype.type
    norms = np.empty((2, n), products.dtype)
    sums = np.zeros((2, n), products.dtype)
    for i in range(n):
        norms[0, i] = products[i, i]
        norms[1, i] = outputs[i, i]
    for i in range(n):
        _add_distances(products[i], norms[0], norms[0, i], sums[0])
    total = 0.0
    for i in range(n):
        total += sums[0, i]
    narrow = real(rates[0])
    wide = real(rates[1] / (rates[2] if total < rates[2] else total))
    sums[:] = 0
    unfit = total
    for i in range(n):
        _outputs_kernel(outputs[i], norms[1], norms[1, i], narrow, weights[i], output_pulls[i])
        _features_kernel(products[i], norms[0], norms[0, i], wide, pulls[i], output_pulls[i], sums)
        unfit += norms[1, i]
    value = 0.0
    for i in range(n):
        value += sums[0, i]
        _turn(pulls[i], i, sums[1, i], -4 * wide)
        _turn(output_pulls[i], i, sums[0, i], -4 * narrow)
    return value + 0 * unfit


@njit(error_model="numpy")
def _add_distances(products: Any, norms: Any, norm: Any, sums: Any) -> None:
    for j in range(norms.shape[0]):
        sums[j] += norm + norms[j] - (products[j] + products[j])


@njit(error_model="numpy", fastmath={"contract"})
def _outputs_kernel(
    products: Any, norms: Any, norm: Any, rate: Any, weights: Any, weighted: Any
) -> None:
    lowest, zero = norms.dtype.type(-126), norms.dtype.type(0)
    rate2 = norms.dtype.type(rate * _LOG2_E)
    for j in range(norms.shape[0]):
        t = (norm + norms[j] - (products[j] + products[j])) * rate2
        weighted[j] = exp2(min(max(t, lowest), zero)) * weights[j]


@njit(error_model="numpy", fastmath={"contract"})
def _features_kernel(
    products: Any, norms: Any, norm: Any, rate: Any, pulls: Any, weighted: Any, sums: Any
) -> None:
    """Sums over the Gaussians, and over them times their rates in the widest one's, weighted."""
    lowest, zero, two = norms.dtype.type(-126), norms.dtype.type(0), norms.dtype.type(2)
    rate2 = norms.dtype.type(rate * _LOG2_E)
    for j in range(norms.shape[0]):
        t = (norm + norms[j] - (products[j] + products[j])) * rate2
        a = exp2(min(max(t, lowest), zero))
        b = a * a
        c = b * b
        d = c * c
        e = d * d
        pull = weighted[j] * (a + two * (b + two * (c + two * (d + two * e))))
        joint = weighted[j] * (a + b + c + d + e)
        pulls[j] = pull
        weighted[j] = joint
        sums[0, j] += joint
        sums[1, j] += pull


@njit(error_model="numpy")
def _turn(row: Any, place: Any, total: Any, factor: Any) -> None:
    for j in range(row.shape[0]):
        row[j] *= factor
    row[place] -= total * factor
