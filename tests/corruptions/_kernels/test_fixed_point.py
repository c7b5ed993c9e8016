"""Sums in 16 bits against numpy's in 64."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from shiftcal.corruptions._kernels import fixed_point_kernels, line_kernels
from shiftcal.corruptions._kernels.gaussian_weights import gaussian_weights
from shiftcal.corruptions._kernels.smoothing_plan import mirrored, nearest, smoothing

ANY = np.array([0, 1, 2, 255, 32767, 32768, 40503, 65535], np.uint16)


@njit
def product(a, b):
    return fixed_point_kernels.upper_half(a, b)


@njit
def correlated(n, source, centre, step, weights, bias):
    out = np.empty(n, np.uint16)
    fixed_point_kernels.weighted_sum(out, source, centre, step, weights, bias)
    return out


@njit
def summed(n, source, first, second, sign):
    out = np.empty(n, np.uint16)
    line_kernels.sum_pairs(out, source, first, second, sign)
    return out


def test_the_upper_half_of_a_product_is_cut_not_rounded():
    for a in ANY:
        for b in ANY:
            assert product(a, b) == int(a) * int(b) >> 16


@pytest.mark.parametrize("radius", range(9))
@pytest.mark.parametrize("n", [1, 15, 64, 333])
def test_a_weighted_sum_has_every_term_at_every_radius_and_length(radius, n):
    rng = np.random.default_rng(radius)
    source = rng.integers(0, 32640, 800).astype(np.uint16)
    weights = rng.integers(0, 65536 // (2 * radius + 2), radius + 1).astype(np.uint16)
    found = correlated(n, source, 100, 7, weights, np.uint16(5))
    wide, at = source.astype(np.int64), 100 + np.arange(n)
    terms = [(wide[at - 7 * k] + wide[at + 7 * k]) * int(w) >> 16 for k, w in enumerate(weights)]
    assert np.array_equal(found, 5 + sum(terms))


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("sign", [1, -1])
def test_lines_are_added_and_subtracted_modulo_16_bits(count, sign):
    rng = np.random.default_rng(count)
    source = rng.integers(0, 65536, 1000).astype(np.uint16)
    first, second = rng.integers(0, 800, (2, count))
    found = summed(150, source, first, second, np.uint16(sign % 65536))
    wide, at = source.astype(np.int64), np.arange(150)
    wanted = sum(wide[a + at] + sign * wide[b + at] for a, b in zip(first, second, strict=True))
    assert np.array_equal(found, wanted % 65536)


@pytest.mark.parametrize("sigma", [0.05, 0.25, 0.5, 1, 2.3, 6, 12])
def test_the_weights_of_a_smoothing_are_those_of_its_kernel(sigma):
    kernel = gaussian_weights(sigma, 4.0).astype(np.float64)
    half = kernel[len(kernel) // 2 :]
    plan = smoothing(half, nearest(9, len(half) - 1), nearest(9, len(half) - 1))
    units = np.where(np.arange(len(half)) == 0, 2.0**-16, 2.0**-17)
    # The centre also takes what rounding the others leaves, and stays below 1.
    np.testing.assert_allclose(plan.weights[1:] * units[1:], half[1:], atol=2.0**-18)
    np.testing.assert_allclose(plan.weights[0] * units[0], half[0], atol=(len(half) + 1) * 2.0**-17)


@pytest.mark.parametrize(("length", "radius"), [(8, 3), (8, 7), (5, 23), (2, 4)])
def test_padded_sides_are_those_of_numpy(length, radius):
    line = np.arange(length)
    assert np.array_equal(line[nearest(length, radius)], np.pad(line, radius, mode="edge"))
    assert np.array_equal(line[mirrored(length, radius)], np.pad(line, radius, mode="reflect"))
