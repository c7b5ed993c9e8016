"""The figures of corruptions side by side: what stands where, and that pixels are untouched."""

from __future__ import annotations

import numpy as np
import pytest
from photos import photo, place_of

import shiftcal as sc
from shiftcal import corruptions
from shiftcal.report import gallery


def made(*names):
    return [corruptions.get(name)() for name in names]


def test_all_corruptions_follow_the_original_family_by_family():
    image = photo(32, 32)
    corrupted = made("contrast", "gaussian_noise", "zoom_blur")
    tiles = gallery.tiles_of(image, corrupted, severity=2, seed=5, table="auto")
    assert [label for label, _ in tiles] == ["original", "gaussian noise", "zoom blur", "contrast"]
    assert tiles[0][1] is image
    expected = sc.corrupt(image, "gaussian_noise", severity=2, seed=5)
    assert np.array_equal(tiles[1][1], expected)


def test_one_corruption_is_shown_at_all_its_severities():
    image = photo(32, 40)
    tiles = gallery.tiles_of(image, made("contrast"), severity=None, seed=0, table="imagenet")
    assert [label for label, _ in tiles] == ["original", *(f"severity {s}" for s in range(1, 6))]
    for severity, (_, shown) in enumerate(tiles[1:], start=1):
        expected = sc.corrupt(image, "contrast", severity=severity, table="imagenet")
        assert np.array_equal(shown, expected)


@pytest.mark.parametrize(
    ("height", "width", "times"), [(32, 32, 4), (64, 100, 2), (120, 120, 1), (224, 300, 1)]
)
def test_small_pictures_are_enlarged_by_a_whole_number_and_no_pixel_is_mixed(height, width, times):
    tiles = [(f"number {i}", np.roll(photo(height, width), i, axis=1)) for i in range(5)]
    figure = gallery.draw(tiles, heading="five")
    places = [place_of(image, figure, times) for _, image in tiles]
    assert places == sorted(places, key=lambda place: (place[1], place[0]))
