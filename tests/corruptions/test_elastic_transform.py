"""Elastic transform, against the published recipe with OpenCV, scikit-image and scipy."""

from __future__ import annotations

import tracemalloc

import cv2
import numpy as np
import pytest
from corrupted import corrupted
from image_streams import image_keys, symmetric_halves, words
from photos import odd_images, photos
from scipy import stats
from scipy.ndimage import map_coordinates
from skimage.filters import gaussian

from shiftcal.corruptions import ElasticTransform
from shiftcal.corruptions._kernels.elastic_transform_kernels import warp

NAME = "elastic_transform"
PUBLISHED = {
    "cifar": (
        32,
        32,
        [(0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)],
    ),
    "tiny-imagenet": (
        64,
        64,
        [(0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)],
    ),
    "imagenet": (
        224,
        244,
        [(2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)],
    ),
}
SIZES = [
    ("cifar", 32, 32),
    ("cifar", 40, 27),
    ("cifar", 8, 11),
    ("tiny-imagenet", 64, 64),
    ("tiny-imagenet", 50, 90),
    ("imagenet", 224, 224),
    ("imagenet", 200, 150),
]


def pixels(table, severity, height, width):
    """Strength, width of the Gaussian and reach of the points in pixels, at this size."""
    side, factor, settings = PUBLISHED[table]
    return [factor * value * (min(height, width) / side) for value in settings[severity - 1]]


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


@pytest.mark.parametrize(("table", "height", "width"), SIZES)
@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_transform_is_the_published_one_given_the_same_numbers(table, height, width, severity):
    images = np.concatenate([photos(height, width), odd_images(height, width)])
    if table == "imagenet":
        images = images[[0, 3, 7, 9]]  # scipy takes its time with a Gaussian of 171 pixels
    got = corrupted(images, NAME, severity, table)
    parameters = pixels(table, severity, height, width)
    expected = np.stack(
        [
            transformed(image, parameters, same_numbers(key, height, width))
            for image, key in zip(images, image_keys(NAME, severity, len(images)), strict=True)
        ]
    )
    difference = got.astype(int) - expected
    assert np.abs(difference).max() <= 1
    # what lies between is rounded to 1/8 level and the second weights to 1/1024: about 0.03 levels
    assert (difference != 0).mean() < 0.04
    assert abs(difference.mean()) < 0.01


def test_flat_images_stay_as_they_are():
    flat = odd_images(40, 33)[:4]
    for table in PUBLISHED:
        for severity in range(1, 6):
            np.testing.assert_array_equal(corrupted(flat, NAME, severity, table), flat)


@pytest.mark.parametrize(("severity", "draws"), [(1, 400), (3, 400), (5, 400)])
def test_transform_is_the_published_one_in_distribution(severity, draws):
    image = photos(32, 32)[3]
    parameters = pixels("cifar", severity, 32, 32)
    rng = np.random.default_rng(severity)
    ours = corrupted(np.repeat(image[None], draws, axis=0), NAME, severity, "cifar", seed=3)
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


def test_noise_of_a_stream_is_uniform_and_independent():
    along, down, _ = same_numbers(image_keys(NAME, 3, 1)[0], 224, 224)
    n = along.size
    for field in (along, down):
        assert stats.kstest(field.ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
        for shift in ((0, 1), (1, 0), (1, 1)):
            shifted = np.roll(field, shift, axis=(0, 1))
            # five standard errors
            assert abs(np.corrcoef(field.ravel(), shifted.ravel())[0, 1]) < 5 * n**-0.5
    assert abs(np.corrcoef(along.ravel(), down.ravel())[0, 1]) < 5 * n**-0.5


def test_imagenet_table_keeps_the_244_that_should_have_been_224():
    name, (reach, strength, _, _) = ElasticTransform()._plan(
        ElasticTransform().setting(1, table="imagenet"), 224, 224
    )
    assert name == "warp_and_displace_smoothly"
    assert strength == 488
    assert reach == pytest.approx(24.4)
    settings = ElasticTransform.settings["imagenet"]
    assert [setting[1] for setting in settings] == [244 * s for s in (0.7, 0.08, 0.01, 0.01, 0.01)]


def test_lengths_grow_with_the_shorter_side():
    corruption = ElasticTransform()
    _, (reach, strength, weights) = corruption._plan(corruption.setting(4, table="cifar"), 48, 99)
    assert reach == pytest.approx(48 * 0.05)
    assert strength == pytest.approx(48 * 0.1)
    assert len(weights) == 2 * int(3 * 48 * 0.04 + 0.5) + 1


def test_first_severity_of_small_images_is_the_affine_map_alone():
    image = photos(32, 32)[2]
    key = image_keys(NAME, 1, 1)[0]
    moves = same_numbers(key, 32, 32)[2]
    expected = affine(image.astype(np.float32), 32 * 0.08, moves, (16, 16))
    got = corrupted(image[None], NAME, 1, "cifar")[0]
    # cut to whole levels, so up to 1 below
    assert np.abs(got + 0.5 - expected).max() < 0.51


def test_points_are_off_the_centre_of_an_image_that_is_not_square():
    image = photos(64, 120)[1]
    key = image_keys(NAME, 1, 1)[0]
    numbers = same_numbers(key, 64, 120)
    parameters = pixels("tiny-imagenet", 1, 64, 120)
    got = corrupted(image[None], NAME, 1, "tiny-imagenet")[0].astype(int)
    published = transformed(image, parameters, numbers)
    centred = transformed(image, parameters, numbers, centre=(60, 32))
    assert np.abs(got - published).max() <= 1
    assert np.abs(got - centred).mean() > 5


@pytest.mark.parametrize("reach", [1e2, 1e5, 1e9])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (9, 300), (224, 31)])
def test_points_far_outside_are_taken_from_within(reach, height, width):
    """Moves as large as the points' distance can fold the image onto a line."""
    images = np.random.default_rng(0).integers(50, 60, (20, height, width, 3), dtype=np.uint8)
    out = np.zeros_like(images)
    view = images.view()
    view.flags.writeable = False
    warp(view, out, float(reach), image_keys(NAME, 1, 20))
    assert out.min() >= 50
    assert out.max() <= 59


@pytest.mark.parametrize("table", PUBLISHED)
@pytest.mark.parametrize(("height", "width"), [(8, 10_000), (10_000, 8)])
def test_the_plan_of_a_long_narrow_image_takes_little_memory(table, height, width):
    """A matrix of 10,000 x 10,000 would be 800 MB."""
    elastic = ElasticTransform()
    tracemalloc.start()
    for severity in range(1, 6):
        elastic._plan(elastic.setting(severity, table=table), height, width)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
