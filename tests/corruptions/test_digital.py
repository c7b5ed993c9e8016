"""Digital corruptions against Pillow, scikit-image and OpenCV."""

from __future__ import annotations

import io
from fractions import Fraction

import cv2
import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo, photos
from PIL import Image
from random_fields import TABLES, image_keys, symmetric_halves, words
from scipy import stats
from scipy.ndimage import map_coordinates
from skimage.filters import gaussian

from shiftcal import corruptions
from shiftcal.corruptions import ElasticTransform
from shiftcal.corruptions.digital import JpegCompression, Pixelate

# ---- contrast


CONTRAST_SIZES = [(32, 32), (200, 150), (9, 11)]


def published(image, factor):
    x = image / 255.0
    means = x.mean(axis=(0, 1), keepdims=True)
    return np.uint8(np.clip((x - means) * factor + means, 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_the_published_recipe(table, severity):
    (factor,) = corruptions.get("contrast")().setting(severity, table=table)
    for size in CONTRAST_SIZES:
        for images, share in ((photos(*size), 0.99), (odd_images(*size), 0)):
            found = corrupted(images, "contrast", severity, table).astype(np.int64)
            differences = found - np.stack([published(image, factor) for image in images])
            assert np.abs(differences).max() <= 1
            assert (differences == 0).mean() > share


# ---- elastic transform


ELASTIC_TRANSFORM_SIZES = [("cifar", 8, 11), ("tiny-imagenet", 50, 90), ("imagenet", 200, 150)]


def pixels(table, severity, height, width):
    """Strength, width of the Gaussian and reach of the points in pixels, at this size."""
    *values, side = ElasticTransform.settings[table][severity - 1]
    return [value * (min(height, width) / side) for value in values]


def same_numbers(key, height, width):
    """The numbers in (-1, 1) that the kernel draws: along, down, and moves of three points."""
    along, down = symmetric_halves(words(key, 0, height * width))
    moves = (2 * words(key, 2**32 - 16, 6).astype(np.float64) + 1) / 2**32 - 1
    shape = (height, width)
    return along.reshape(shape), down.reshape(shape), moves.reshape(3, 2)


def numpy_numbers(rng, height, width):
    shape = (height, width)
    return rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape), rng.uniform(-1, 1, (3, 2))


def affine(image, reach, moves, centre):
    q = min(image.shape[:2]) // 3
    a, b = centre
    points = np.float32([[a + q, b + q], [a + q, b - q], [a - q, b - q]])
    matrix = cv2.getAffineTransform(points, points + (reach * moves).astype(np.float32))
    size = image.shape[1::-1]
    return cv2.warpAffine(image, matrix, size, borderMode=cv2.BORDER_REFLECT_101)


def transformed(image, parameters, numbers, centre=None):
    """The published recipe; its numbers in (-1, 1) are given."""
    strength, sigma, reach = parameters
    along, down, moves = numbers
    height, width = image.shape[:2]
    centre = centre or (height // 2, width // 2)
    image = affine(image.astype(np.float32) / 255, reach, moves, centre)
    u, v = (
        (gaussian(field, sigma, mode="reflect", truncate=3) * strength).astype(np.float32)
        for field in (along, down)
    )
    y, x = np.mgrid[:height, :width]
    channels = [
        map_coordinates(image[..., c], [y + v, x + u], order=1, mode="reflect") for c in range(3)
    ]
    return np.uint8(np.clip(np.stack(channels, axis=-1), 0, 1) * 255)


@pytest.mark.parametrize(("table", "height", "width"), ELASTIC_TRANSFORM_SIZES)
@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_transform_is_the_published_one_given_the_same_numbers(table, height, width, severity):
    images = np.concatenate([photos(height, width), odd_images(height, width)])
    if table == "imagenet":
        images = images[[0, 3, 7, 9]]  # scipy takes its time with a Gaussian of 171 pixels
    got = corrupted(images, "elastic_transform", severity, table)
    parameters = pixels(table, severity, height, width)
    expected = np.stack(
        [
            transformed(image, parameters, same_numbers(key, height, width))
            for image, key in zip(
                images, image_keys("elastic_transform", severity, len(images)), strict=True
            )
        ]
    )
    difference = got.astype(int) - expected
    assert np.abs(difference).max() <= 1
    # what lies between is rounded to 1/8 level and the second weights to 1/1024: about 0.03 levels
    assert (difference != 0).mean() < 0.04
    assert abs(difference.mean()) < 0.01


@pytest.mark.parametrize(("severity", "draws"), [(1, 400), (5, 400)])
def test_transform_is_the_published_one_in_distribution(severity, draws):
    image = photos(32, 32)[3]
    parameters = pixels("cifar", severity, 32, 32)
    rng = np.random.default_rng(severity)
    ours = corrupted(
        np.repeat(image[None], draws, axis=0), "elastic_transform", severity, "cifar", seed=3
    )
    theirs = np.stack(
        [transformed(image, parameters, numpy_numbers(rng, 32, 32)) for _ in range(draws)]
    )
    # one number an image, so that they are independent; p-values of right code are uniform
    for pick in (
        lambda x: np.abs(x.astype(float) - image).mean(axis=(1, 2, 3)),
        lambda x: x.mean(axis=(1, 2, 3)),
        lambda x: x[:, 3, 28, 0].astype(float),
        lambda x: x[:, 16, 16, 1].astype(float),
        lambda x: np.abs(np.diff(x.astype(float), axis=1)).mean(axis=(1, 2, 3)),
    ):
        assert stats.ks_2samp(pick(ours), pick(theirs)).pvalue > 1e-3


# ---- pixelate


SIZES = [(32, 32), (224, 224), (40, 52), (33, 47), (31, 18)]
BOX = Image.Resampling.BOX


def _by_pillow_pixelate(images, fraction):
    """Down along the rows first, as every Pillow does with one direction at a time, then up."""
    height, width = images.shape[1:3]
    small = max(1, int(width * fraction)), max(1, int(height * fraction))
    made = []
    for image in images:
        narrow = Image.fromarray(image).resize((small[0], height), BOX)
        made.append(np.array(narrow.resize(small, BOX).resize((width, height), BOX)))
    return np.stack(made)


def _ours_pixelate(images, fraction):
    corruption, out = Pixelate(), np.empty_like(images)
    plan = corruption._plan((fraction,), *images.shape[1:3])
    corruption._apply(images, out, plan, np.zeros((len(images), 2), np.uint32))
    return out


def _noise(height, width, n=1):
    return np.random.default_rng(3).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_pixelate_every_published_severity_equals_pillow_in_every_bit(table, height, width):
    images = np.concatenate(
        [photos(height, width), odd_images(height, width), _noise(height, width, 2)]
    )
    for severity, (fraction,) in enumerate(Pixelate.settings[table], start=1):
        result = corrupted(images, "pixelate", severity, table)
        np.testing.assert_array_equal(result, _by_pillow_pixelate(images, fraction))


@pytest.mark.parametrize("fraction", [0.95, 0.65, 0.3])
def test_every_side_from_8_to_259_equals_pillow(fraction):
    for side in range(8, 260, 3):
        images = _noise(side, 8 + side * 7 % 61)
        np.testing.assert_array_equal(
            _ours_pixelate(images, fraction), _by_pillow_pixelate(images, fraction)
        )
        images = _noise(8 + side * 5 % 43, side)
        np.testing.assert_array_equal(
            _ours_pixelate(images, fraction), _by_pillow_pixelate(images, fraction)
        )


# ---- jpeg compression


def _saved(image, quality, **options):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, **options)
    return Image.open(file)


def _by_pillow_jpeg_compression(images, quality):
    return np.stack([np.array(_saved(image, quality)) for image in images])


def _ours_jpeg_compression(images, quality):
    corruption, out = JpegCompression(), np.empty_like(images)
    plan = corruption._plan((quality,), *images.shape[1:3])
    corruption._apply(images, out, plan, np.zeros((len(images), 2), np.uint32))
    return out


def _all_kinds(height, width):
    rng = np.random.default_rng(5)
    noise = rng.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
    extremes = rng.integers(0, 2, (2, height, width, 3), dtype=np.uint8) * np.uint8(255)
    return np.concatenate([photos(height, width), odd_images(height, width), noise, extremes])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_jpeg_compression_every_published_severity_equals_pillow_in_every_bit(table, height, width):
    images = _all_kinds(height, width)
    for severity, (quality,) in enumerate(JpegCompression.settings[table], start=1):
        result = corrupted(images, "jpeg_compression", severity, table)
        np.testing.assert_array_equal(result, _by_pillow_jpeg_compression(images, quality))


@pytest.mark.parametrize("height", range(8, 25, 3))
def test_every_small_size_equals_pillow_however_many_pixels_a_block_lacks(height):
    for width in range(8, 25):
        images = np.stack([photo(height, width), photo(height, width, "flower.jpg")])
        np.testing.assert_array_equal(
            _ours_jpeg_compression(images, 40), _by_pillow_jpeg_compression(images, 40)
        )


def test_every_quality_equals_pillow():
    images = _all_kinds(24, 40)
    for quality in range(1, 101, 3):
        np.testing.assert_array_equal(
            _ours_jpeg_compression(images, quality), _by_pillow_jpeg_compression(images, quality)
        )


# ---- saturate


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
def test_it_is_the_formula_in_fractions(table, severity):
    setting = corruptions.get("saturate")().setting(severity, table=table)
    factor, extra = (Fraction(str(number)) for number in setting)
    colours = np.random.default_rng(3).integers(0, 256, (1, 40, 30, 3), dtype=np.uint8)
    colours[0, :15] //= 17
    colours[0, 15:20] = colours[0, 15:20, :, :1]
    found = corrupted(colours, "saturate", severity, table)
    expected = [exact(pixel, factor, extra) for pixel in colours.reshape(-1, 3)]
    np.testing.assert_array_equal(found.reshape(-1, 3), expected)
