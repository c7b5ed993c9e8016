"""Saturation against scikit-image's way through HSV."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo, photos
from random_fields import TABLES
from skimage.color import hsv2rgb, rgb2hsv

from shiftcal import corruptions

NAME = "saturate"
SIZES = [(32, 32), (40, 52), (64, 64), (224, 224), (200, 150), (9, 11)]


def published(image, factor, extra):
    hsv = rgb2hsv(image / 255.0)
    hsv[..., 1] = np.clip(hsv[..., 1] * factor + extra, 0, 1)
    return np.uint8(np.clip(hsv2rgb(hsv), 0, 1) * 255)


def exact(pixel, factor, extra):
    """In fractions: floor(V - (V - x) S' / S), and grey as if it were red."""
    value, least = int(max(pixel)), int(min(pixel))
    if value == 0:
        return [0, 0, 0]
    saturation = Fraction(value - least, value)
    changed = min(saturation * factor + extra, Fraction(1))
    if not saturation:
        return [value, *[int(value * (1 - changed))] * 2]
    return [int(value - (value - int(x)) * changed / saturation) for x in pixel]


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_within_a_level_of_the_way_through_hsv(table, severity):
    setting = corruptions.get(NAME)().setting(severity, table=table)
    for size in SIZES:
        images = np.concatenate([photos(*size), odd_images(*size)])
        found = corrupted(images, NAME, severity, table).astype(np.int64)
        differences = found - published(images, *setting)
        assert np.abs(differences).max() <= 1
        # What differs is whole numbers that float64 takes for the number below. At severity 3 all
        # are whole or halves: V - 2 (V - x).
        assert differences.min() == 0
        assert (differences == 0).mean() > (0.85 if severity == 3 else 0.97)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_the_formula_in_fractions(table, severity):
    setting = corruptions.get(NAME)().setting(severity, table=table)
    factor, extra = (Fraction(str(number)) for number in setting)
    colours = np.random.default_rng(3).integers(0, 256, (1, 40, 30, 3), dtype=np.uint8)
    colours[0, :15] //= 17
    colours[0, 15:20] = colours[0, 15:20, :, :1]
    found = corrupted(colours, NAME, severity, table)
    expected = [exact(pixel, factor, extra) for pixel in colours.reshape(-1, 3)]
    np.testing.assert_array_equal(found.reshape(-1, 3), expected)


def test_grey_turns_reddish_where_saturation_is_added():
    grey = np.repeat(np.arange(64, dtype=np.uint8) * 4, 3).reshape(1, 8, 8, 3)
    found = corrupted(grey, NAME, 5, "cifar")
    np.testing.assert_array_equal(found[..., 0], grey[..., 0])
    less = grey[..., 0].astype(np.int64) * 4 // 5
    np.testing.assert_array_equal(found[..., 1], less)
    np.testing.assert_array_equal(found[..., 2], less)
    np.testing.assert_array_equal(corrupted(grey, NAME, 3, "cifar"), grey)


@pytest.mark.parametrize("table", TABLES)
def test_the_first_two_severities_take_colour_away_and_the_others_add_it(table):
    image = photo(40, 52)[None]
    before = np.ptp(image.astype(np.int64), axis=-1).mean()
    after = [
        np.ptp(corrupted(image, NAME, severity, table).astype(np.int64), axis=-1).mean()
        for severity in range(1, 6)
    ]
    assert after[1] < after[0] < before < after[2] < after[3] < after[4]
    assert not corruptions.get(NAME).monotone
