"""Contrast against the published recipe."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo, photos
from random_fields import TABLES

from shiftcal import corruptions

NAME = "contrast"
SIZES = [(32, 32), (40, 52), (64, 64), (224, 224), (200, 150), (9, 11)]


def published(image, factor):
    x = image / 255.0
    means = x.mean(axis=(0, 1), keepdims=True)
    return np.uint8(np.clip((x - means) * factor + means, 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_the_published_recipe(table, severity):
    (factor,) = corruptions.get(NAME)().setting(severity, table=table)
    for size in SIZES:
        for images, share in ((photos(*size), 0.99), (odd_images(*size), 0)):
            found = corrupted(images, NAME, severity, table).astype(np.int64)
            differences = found - np.stack([published(image, factor) for image in images])
            assert np.abs(differences).max() <= 1
            assert (differences == 0).mean() > share


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_a_picture_of_one_colour_stays_what_it_is(table, severity):
    colours = np.random.default_rng(0).integers(0, 256, (200, 1, 1, 3), dtype=np.uint8)
    images = np.broadcast_to(colours, (200, 9, 11, 3)).copy()
    np.testing.assert_array_equal(corrupted(images, NAME, severity, table), images)


def test_each_channel_of_each_image_has_its_own_mean():
    image = photo(40, 52)
    swapped = np.ascontiguousarray(image[..., ::-1])
    found = corrupted(np.stack([image, swapped]), NAME, 4, "cifar")
    np.testing.assert_array_equal(found[0], found[1][..., ::-1])
    for channel in range(3):
        mean = image[..., channel].mean()
        # Cut, so half a level less.
        assert found[0][..., channel].mean() == pytest.approx(mean - 0.5, abs=0.1)


def test_the_sums_of_a_large_image_do_not_run_over():
    # A sum of all values needs 34 bits.
    white = np.full((1, 4000, 6000, 3), 255, np.uint8)
    white[0, :2000] = 250
    assert (corrupted(white, NAME, 5, "imagenet") == 252).all()
