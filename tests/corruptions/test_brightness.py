"""Brightness against scikit-image's way through HSV."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photos
from random_fields import TABLES
from skimage.color import hsv2rgb, rgb2hsv

from shiftcal import corruptions

NAME = "brightness"
SIZES = [(32, 32), (40, 52), (64, 64), (224, 224), (200, 150), (9, 11)]


def published(image, rise):
    hsv = rgb2hsv(image / 255.0)
    hsv[..., 2] = np.clip(hsv[..., 2] + rise, 0, 1)
    return np.uint8(np.clip(hsv2rgb(hsv), 0, 1) * 255)


def exact(image, twentieths):
    """In whole numbers: floor(x min(V + 255 c, 255) / V), with c in twentieths."""
    x = image.astype(np.int64)
    value = x.max(axis=-1, keepdims=True)
    raised = np.minimum(20 * value + 255 * twentieths, 20 * 255)
    black = value == 0
    return np.where(black, raised // 20, x * raised // np.where(black, 1, 20 * value))


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_within_a_level_of_the_way_through_hsv(table, severity):
    (rise,) = corruptions.get(NAME)().setting(severity, table=table)
    for size in SIZES:
        images = np.concatenate([photos(*size), odd_images(*size)])
        found = corrupted(images, NAME, severity, table).astype(np.int64)
        differences = found - published(images, rise)
        assert np.abs(differences).max() <= 1
        # What differs is whole numbers that float64 takes for the number below.
        assert differences.min() == 0
        assert (differences == 0).mean() > 0.96


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_the_formula_in_whole_numbers(table, severity):
    (rise,) = corruptions.get(NAME)().setting(severity, table=table)
    colours = np.random.default_rng(3).integers(0, 256, (1, 300, 200, 3), dtype=np.uint8)
    colours[0, :150] //= 17
    found = corrupted(colours, NAME, severity, table)
    np.testing.assert_array_equal(found, exact(colours, round(20 * rise)))


def test_black_becomes_grey_and_white_stays_white():
    black, white = corrupted(odd_images(8, 9)[:2], NAME, 5, "cifar")
    assert (black == 76).all()  # 0.3 * 255 = 76.5, cut
    assert (white == 255).all()


def test_a_saturated_colour_keeps_its_missing_channels():
    red = np.zeros((1, 8, 9, 3), np.uint8)
    red[..., 0] = 200
    assert (corrupted(red, NAME, 5, "imagenet") == [255, 0, 0]).all()
