"""Crops of one size, and flips."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.adaptation.feeds.augment.horizontal_flip import HorizontalFlip
from shiftcal.adaptation.feeds.augment.random_crop import RandomCrop

# Every pixel says where it is.
PLACES = np.stack(np.broadcast_arrays(*np.ogrid[:12, :15], 0), axis=2).astype(np.uint8)


def test_all_places_of_a_crop_are_equally_likely():
    rng = np.random.default_rng(1)
    cut = [RandomCrop(10)(PLACES, rng) for _ in range(3600)]
    assert {part.shape for part in cut} == {(10, 10, 3)}
    corners, counts = np.unique([tuple(part[0, 0]) for part in cut], axis=0, return_counts=True)
    assert corners[:, :2].tolist() == [[top, left] for top in range(3) for left in range(6)]
    # Chi-squared of 17 degrees of freedom: above 40.8 with a probability of 0.001.
    assert np.sum((counts - 200) ** 2 / 200) < 40.8
    np.testing.assert_array_equal(cut[0], PLACES[cut[0][0, 0, 0] :, cut[0][0, 0, 1] :][:10, :10])


def test_a_crop_as_large_as_the_image_is_the_image():
    whole = PLACES[:, :12]
    np.testing.assert_array_equal(RandomCrop(12)(whole, np.random.default_rng(0)), whole)


@pytest.mark.parametrize(("probability", "wanted"), [(0.5, 1000), (0.0, 0), (1.0, 2000)])
def test_images_are_mirrored_as_often_as_was_said(probability, wanted):
    rng = np.random.default_rng(2)
    made = [HorizontalFlip(probability)(PLACES, rng) for _ in range(2000)]
    mirrored = sum(np.array_equal(one, PLACES[:, ::-1]) for one in made)
    kept = sum(np.array_equal(one, PLACES) for one in made)
    assert mirrored + kept == 2000
    # Five standard deviations of a fair coin.
    assert abs(mirrored - wanted) <= 5 * np.sqrt(2000 * probability * (1 - probability))
