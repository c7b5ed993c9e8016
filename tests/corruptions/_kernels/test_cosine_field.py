"""Smooth fields from few cosines, against scipy's smoothing of the same noise."""

from __future__ import annotations

import numpy as np
import pytest
from image_streams import image_keys, symmetric_halves, words
from scipy import ndimage

from shiftcal.corruptions._kernels.cosine_basis import axis_of, cosines_needed, fold_weights
from shiftcal.corruptions._kernels.cosine_field_kernels import cosine_fields
from shiftcal.corruptions._kernels.gaussian_weights import gaussian_weights


def axis_for(weights, n, *, rest):
    return axis_of(weights, n, k=cosines_needed(weights, n, rest=rest))


def as_tuple(axis):
    return axis.weights, axis.cosines, axis.scaled


@pytest.mark.parametrize(
    ("height", "width", "sigma", "strength"),
    [
        (224, 224, 170.8, 488),
        (224, 224, 19.52, 488),
        (150, 203, 13.0, 327),
        (64, 64, 19.2, 3.2),
        (32, 32, 6.4, 1.6),
        (8, 51, 1.6, 0.4),
    ],
)
def test_fields_are_those_of_scipy(height, width, sigma, strength):
    weights = gaussian_weights(sigma, 3)
    rest = 1e-4 * 3**0.5 / strength
    down, across = (axis_for(weights, n, rest=rest) for n in (height, width))
    key = image_keys("elastic_transform", 1, 1)[0]
    fields = np.full((2, height, width), np.nan, np.float32)
    cosine_fields(fields, as_tuple(down), as_tuple(across), np.float32(strength), *key)
    noise = symmetric_halves(words(key, 0, height * width))
    for field, values in zip(fields, noise, strict=True):
        expected = strength * ndimage.gaussian_filter(
            values.reshape(height, width), sigma, mode="reflect", truncate=3
        )
        difference = field - expected
        # what is left out has a root mean square of 1e-4 pixels at most
        assert np.sqrt(np.mean(difference**2)) < 1.5e-4
        assert np.abs(difference).max() < 1e-3
        assert expected.std() > 20 * np.abs(difference).max()


def test_wide_smoothing_needs_few_cosines():
    axis = axis_for(gaussian_weights(170.8, 3), 224, rest=1e-6)
    assert axis.cosines.shape == (224, axis.scaled.shape[1])
    assert axis.scaled.shape[1] <= 4
    assert len(axis.weights) == 2 * 224 + 1


def test_rows_of_cosines_are_filled_up_with_zeros():
    axis = axis_for(gaussian_weights(5.0, 3), 27, rest=1e-6)
    assert axis.cosines.shape[0] == 32
    assert not axis.cosines[27:].any()
    np.testing.assert_allclose(
        axis.cosines.T @ axis.cosines, np.eye(axis.cosines.shape[1]), atol=1e-6
    )


@pytest.mark.parametrize("n", [8, 9, 40])
def test_folded_weights_smooth_mirrored_points_alike(n):
    weights = gaussian_weights(20.0, 3)
    values = np.random.default_rng(0).normal(size=n)
    whole = ndimage.convolve1d(values, weights.astype(float), mode="reflect")
    folded = fold_weights(weights, n)
    assert len(folded) == 2 * n + 1
    np.testing.assert_allclose(
        ndimage.convolve1d(values, folded.astype(float), mode="reflect"), whole, atol=1e-6
    )
