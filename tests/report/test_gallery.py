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
    tiles = gallery.tiles_of_all(
        image, made("contrast", "gaussian_noise", "zoom_blur"), severity=2, seed=5, table="auto"
    )
    assert [tile.label for tile in tiles] == ["original", "gaussian noise", "zoom blur", "contrast"]
    assert tiles[0].image is image
    expected = sc.corrupt(image, "gaussian_noise", severity=2, seed=5)
    assert np.array_equal(tiles[1].image, expected)


def test_one_corruption_is_shown_at_all_its_severities():
    image = photo(32, 40)
    tiles = gallery.tiles_of_one(image, made("contrast")[0], seed=0, table="imagenet")
    assert [tile.label for tile in tiles] == ["original", *(f"severity {s}" for s in range(1, 6))]
    for severity, tile in enumerate(tiles[1:], start=1):
        expected = sc.corrupt(image, "contrast", severity=severity, table="imagenet")
        assert np.array_equal(tile.image, expected)


def test_the_sixteen_of_the_paper_are_all_but_three():
    assert len(gallery.PAPER) == 16
    assert set(corruptions.names()) - set(gallery.PAPER) == {
        "jpeg_compression",
        "motion_blur",
        "snow",
    }


@pytest.mark.parametrize(
    ("height", "width", "times"), [(32, 32, 4), (64, 100, 2), (120, 120, 1), (224, 300, 1)]
)
def test_small_pictures_are_enlarged_by_a_whole_number_and_no_pixel_is_mixed(height, width, times):
    tiles = [
        gallery.Tile(f"number {i}", np.roll(photo(height, width), i, axis=1)) for i in range(5)
    ]
    figure = gallery.draw(tiles, heading="five")
    places = [place_of(tile.image, figure, times) for tile in tiles]
    assert places == sorted(places, key=lambda place: (place[1], place[0]))


@pytest.mark.parametrize(("count", "columns"), [(20, 5), (17, 6), (6, 6), (1, 1), (4, 4)])
def test_few_places_stay_empty(count, columns):
    tiles = [gallery.Tile("x", photo(128, 128))] * count
    width, height = gallery.draw(tiles, heading="h").size
    one = gallery.draw(tiles[:1], heading="h").size
    assert width == columns * (one[0] - 12) + 12
    assert (height - one[1]) % (128 + 12) < 128
    assert gallery.draw(tiles, heading="h", one_row=True).size[1] == one[1]


def test_labels_and_heading_are_not_cut():
    label = "a corruption with a rather long name"
    blank = np.full((8, 8, 3), 255, np.uint8)
    tiles = [gallery.Tile(label, blank), gallery.Tile("b", blank)]
    pixels = np.asarray(gallery.draw(tiles, heading="h", one_row=True))
    assert pixels.shape[1] > 2 * 8 * len(label) * 0.7
    assert (pixels[:, -8:] == 255).all()
    heading = "a heading that says a lot about very little, at length"
    wide = np.asarray(gallery.draw(tiles[1:], heading=heading))
    assert wide.shape[1] > gallery.draw(tiles[1:], heading="h").size[0]
    assert (wide[:, -8:] == 255).all()
