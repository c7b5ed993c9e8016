"""JPEG compression against Pillow, which does it with libjpeg-turbo."""

from __future__ import annotations

import io

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo, photos
from PIL import Image

from shiftcal.corruptions.jpeg_compression import JpegCompression, _quantisation

PUBLISHED = {
    "cifar": (80, 65, 58, 50, 40),
    "tiny-imagenet": (65, 58, 50, 40, 25),
    "imagenet": (25, 18, 15, 10, 7),
}
SIZES = [(32, 32), (64, 64), (224, 224), (40, 52), (200, 150), (33, 47), (31, 18)]


def _saved(image, quality, **options):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, **options)
    return Image.open(file)


def _by_pillow(images, quality):
    return np.stack([np.array(_saved(image, quality)) for image in images])


def _ours(images, quality):
    corruption, out = JpegCompression(), np.empty_like(images)
    plan = corruption._plan((quality,), *images.shape[1:3])
    corruption._apply(images, out, plan, np.zeros((len(images), 2), np.uint32))
    return out


def _all_kinds(height, width):
    rng = np.random.default_rng(5)
    noise = rng.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
    extremes = rng.integers(0, 2, (2, height, width, 3), dtype=np.uint8) * np.uint8(255)
    return np.concatenate([photos(height, width), odd_images(height, width), noise, extremes])


@pytest.mark.parametrize("table", PUBLISHED)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_every_published_severity_equals_pillow_in_every_bit(table, height, width):
    images = _all_kinds(height, width)
    for severity, quality in enumerate(PUBLISHED[table], start=1):
        result = corrupted(images, "jpeg_compression", severity, table)
        np.testing.assert_array_equal(result, _by_pillow(images, quality))


@pytest.mark.parametrize("height", range(8, 25))
def test_every_small_size_equals_pillow_however_many_pixels_a_block_lacks(height):
    for width in range(8, 25):
        images = np.stack([photo(height, width), photo(height, width, "flower.jpg")])
        np.testing.assert_array_equal(_ours(images, 40), _by_pillow(images, 40))


def test_every_quality_equals_pillow():
    images = _all_kinds(24, 40)
    for quality in range(1, 101):
        np.testing.assert_array_equal(_ours(images, quality), _by_pillow(images, quality))


def test_a_flat_image_of_any_grey_stays_flat_and_equals_pillow():
    greys = np.arange(256, dtype=np.uint8)
    images = np.broadcast_to(greys[:, None, None, None], (256, 16, 16, 3)).copy()
    result = _ours(images, 25)
    assert (result == result[:, :1, :1, :1]).all()
    np.testing.assert_array_equal(result, _by_pillow(images, 25))


def test_colour_is_kept_at_half_the_resolution_as_pillow_does_unasked():
    images = photos(64, 64)
    full = np.stack([np.array(_saved(image, 80, subsampling=0)) for image in images])
    result = corrupted(images, "jpeg_compression", 1, "cifar")
    assert np.mean(result != full) > 0.5


def test_an_image_comes_out_the_same_alone_and_between_others():
    # 24 x 24 pixels are 9 and 8 blocks, so that the last eight are never complete.
    images = _all_kinds(24, 24)
    together = _ours(images, 15)
    for i in range(len(images)):
        np.testing.assert_array_equal(_ours(images[i : i + 1], 15)[0], together[i])


@pytest.mark.parametrize("quality", [1, 7, 40, 50, 80, 100])
def test_the_reciprocals_divide_as_the_rounded_division_does(quality):
    from shiftcal.corruptions.jpeg_compression import _BRIGHTNESS

    tables = _quantisation(_BRIGHTNESS, quality).astype(np.int64)
    values = np.arange(-8300, 8301)[:, None]  # what 64 samples of -128 to 127 can come to
    step, multiplier, summand, shift = tables[:, np.unique(tables[0], return_index=True)[1]]
    products = (values + (values >> 63)) * multiplier + summand
    assert np.abs(products).max() < 2**31
    expected = np.sign(values) * ((np.abs(values) + 4 * step) // (8 * step))
    np.testing.assert_array_equal(products >> shift, expected)
