"""The figures of corruptions side by side: what stands where, and that pixels are untouched."""

from __future__ import annotations

import numpy as np
import pytest
from photos import photo

import shiftcal as sc
from shiftcal import corruptions
from shiftcal.report import gallery

WHITE = np.array([255, 255, 255])


def made(*names):
    return [corruptions.get(name)() for name in names]


def picture(figure, grid, index, image):
    """What a figure shows at the place of a tile, at the size of the tile's own pixels."""
    left, top = grid.corner(index)
    height, width = image.shape[:2]
    cut = np.asarray(figure)[top : top + grid.times * height, left : left + grid.times * width]
    return cut.reshape(height, grid.times, width, grid.times, 3)


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
    ("height", "width", "times"),
    [(32, 32, 4), (8, 8, 15), (64, 100, 2), (120, 120, 1), (224, 300, 1)],
)
def test_small_pictures_are_enlarged_by_a_whole_number_and_no_pixel_is_mixed(height, width, times):
    tiles = [
        gallery.Tile(f"number {i}", np.roll(photo(height, width), i, axis=1)) for i in range(5)
    ]
    grid = gallery.layout(tiles, one_row=False)
    figure = gallery.draw(tiles, heading="five")
    assert grid.times == times
    assert figure.size == grid.size
    for index, tile in enumerate(tiles):
        shown = picture(figure, grid, index, tile.image)
        assert (shown == tile.image[:, None, :, None]).all()


@pytest.mark.parametrize(("count", "columns"), [(20, 5), (17, 6), (6, 6), (1, 1), (4, 4)])
def test_few_places_stay_empty(count, columns):
    tiles = [gallery.Tile("x", photo(128, 128))] * count
    assert gallery.layout(tiles, one_row=False).columns == columns


def test_a_label_is_drawn_above_its_picture_and_is_not_cut():
    from PIL import ImageFont

    label = "a corruption with a rather long name"
    blank = np.full((8, 8, 3), 255, np.uint8)
    tiles = [gallery.Tile(label, blank), gallery.Tile("b", blank)]
    grid = gallery.layout(tiles, one_row=True)
    pixels = np.asarray(gallery.draw(tiles, heading="h"))
    left, top = grid.corner(0)
    assert grid.corner(1)[0] > left + ImageFont.load_default(grid.font).getlength(label)
    band = (pixels[top - grid.line : top - 2] != WHITE).any(axis=(0, 2))
    # ink from the first letter to the last, none in the gap before the next tile
    assert band[left : left + 6].any()
    assert band[grid.corner(1)[0] - 24 : grid.corner(1)[0] - 11].any()
    assert not band[grid.corner(1)[0] - 8 : grid.corner(1)[0] - 2].any()


def test_a_heading_longer_than_the_tiles_makes_room_for_itself():
    tiles = [gallery.Tile("x", photo(32, 32))]
    grid = gallery.layout(tiles, one_row=True)
    figure = gallery.draw(tiles, heading="a heading that says a lot about very little, at length")
    assert figure.size[0] > grid.size[0]
    assert (np.asarray(figure)[:, -8:] == 255).all()
