"""Pixelation against Pillow's box filter."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photos
from PIL import Image

from shiftcal.corruptions.pixelate import Pixelate

PUBLISHED = {
    "cifar": (0.95, 0.9, 0.85, 0.75, 0.65),
    "tiny-imagenet": (0.9, 0.8, 0.7, 0.6, 0.5),
    "imagenet": (0.6, 0.5, 0.4, 0.3, 0.25),
}
SIZES = [(32, 32), (64, 64), (224, 224), (40, 52), (200, 150), (33, 47), (31, 18)]
BOX = Image.Resampling.BOX


def _by_pillow(images, fraction):
    """Down along the rows first, as every Pillow does with one direction at a time, then up."""
    height, width = images.shape[1:3]
    small = max(1, int(width * fraction)), max(1, int(height * fraction))
    made = []
    for image in images:
        narrow = Image.fromarray(image).resize((small[0], height), BOX)
        made.append(np.array(narrow.resize(small, BOX).resize((width, height), BOX)))
    return np.stack(made)


def _ours(images, fraction):
    corruption, out = Pixelate(), np.empty_like(images)
    plan = corruption._plan((fraction,), *images.shape[1:3])
    corruption._apply(images, out, plan, np.zeros((len(images), 2), np.uint32))
    return out


def _noise(height, width, n=1):
    return np.random.default_rng(3).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("table", PUBLISHED)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_every_published_severity_equals_pillow_in_every_bit(table, height, width):
    images = np.concatenate(
        [photos(height, width), odd_images(height, width), _noise(height, width, 2)]
    )
    for severity, fraction in enumerate(PUBLISHED[table], start=1):
        result = corrupted(images, "pixelate", severity, table)
        np.testing.assert_array_equal(result, _by_pillow(images, fraction))


@pytest.mark.parametrize(
    ("side", "table"), [(32, "cifar"), (64, "tiny-imagenet"), (224, "imagenet")]
)
def test_at_the_sizes_of_the_tables_it_is_the_published_pair_of_calls(side, table):
    image = photos(side, side)[2]
    for severity, fraction in enumerate(PUBLISHED[table], start=1):
        small = Image.fromarray(image).resize((int(side * fraction), int(side * fraction)), BOX)
        expected = np.array(small.resize((side, side), BOX))
        result = corrupted(image[None], "pixelate", severity, table)[0]
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("fraction", sorted({c for table in PUBLISHED.values() for c in table}))
def test_every_side_from_8_to_259_equals_pillow(fraction):
    for side in range(8, 260):
        images = _noise(side, 8 + side * 7 % 61)
        np.testing.assert_array_equal(_ours(images, fraction), _by_pillow(images, fraction))
        images = _noise(8 + side * 5 % 43, side)
        np.testing.assert_array_equal(_ours(images, fraction), _by_pillow(images, fraction))


@pytest.mark.parametrize(("height", "width"), [(8, 8), (8, 64), (64, 8), (9, 300), (300, 9)])
def test_sides_that_shrink_to_almost_nothing_equal_pillow(height, width):
    images = _noise(height, width, 3)
    for fraction in (0.25, 0.13, 0.1):  # down to one pixel
        np.testing.assert_array_equal(_ours(images, fraction), _by_pillow(images, fraction))


def test_rows_are_rounded_before_columns():
    image = np.zeros((1, 8, 8, 3), np.uint8)
    image[0, 0::2, 0::2] = (
        1  # 1 0 of a row has the mean 1/2, rounded up to 1, and so has 1 0 of that
    )
    assert (_ours(image, 0.5) == 1).all()


def test_a_pixel_on_the_border_of_two_boxes_may_count_in_none_as_in_pillow():
    image = np.zeros((1, 51, 51, 3), np.uint8)
    image[0, :, [8, 42]] = 255
    assert (_by_pillow(image, 0.6) == 0).all()
    assert (_ours(image, 0.6) == 0).all()


def test_an_image_comes_out_the_same_alone_and_between_others():
    images = photos(41, 53)
    together = _ours(images, 0.4)
    for i in range(len(images)):
        np.testing.assert_array_equal(_ours(images[i : i + 1], 0.4)[0], together[i])
