"""Smoothing of random fields, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from shiftcal.corruptions._kernels.gaussian_weights import gaussian_weights
from shiftcal.corruptions._kernels.smooth_field_kernels import (
    NEAREST,
    REFLECT,
    scratch_size,
    smooth_field,
)


def smoothed(field, sigma, truncate, border):
    weights = gaussian_weights(sigma, truncate)
    result = field.copy()
    scratch = np.full(scratch_size(*field.shape, len(weights)), np.nan, np.float32)
    smooth_field(result, weights, border, scratch)
    return result


@pytest.mark.parametrize("sigma", [0.4, 0.5, 0.7, 1.0, 1.9, 4.0, 7.0, 30.0])
@pytest.mark.parametrize("truncate", [3.0, 4.0])
@pytest.mark.parametrize("shape", [(32, 32), (40, 27), (8, 61)])
def test_smoothing_is_that_of_scipy_at_both_borders(sigma, truncate, shape):
    field = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    for border, mode in ((NEAREST, "nearest"), (REFLECT, "reflect")):
        expected = ndimage.gaussian_filter(field.astype(float), sigma, mode=mode, truncate=truncate)
        # values of size 1 and sums of up to 241 float32 products: a few times 2**-24
        np.testing.assert_allclose(
            smoothed(field, sigma, truncate, border), expected, atol=1e-6, rtol=0
        )


def test_no_width_smooths_nothing():
    field = np.random.default_rng(1).uniform(-1, 1, (9, 12)).astype(np.float32)
    assert gaussian_weights(0, 3).tolist() == [1.0]
    np.testing.assert_array_equal(smoothed(field, 0, 3, REFLECT), field)


def test_weights_have_the_radius_and_the_sum_of_scipy():
    impulse = np.zeros(41)
    impulse[20] = 1
    for sigma in (0.16, 0.17, 1.5, 4.5):
        weights = gaussian_weights(sigma, 3)
        radius = int(3 * sigma + 0.5)
        assert weights.shape == (2 * radius + 1,)
        expected = ndimage.gaussian_filter1d(impulse, sigma, truncate=3)
        np.testing.assert_allclose(weights, expected[20 - radius : 21 + radius], rtol=1e-7)
