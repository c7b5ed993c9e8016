"""Blurs against OpenCV, scipy, scikit-image and ImageMagick."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from corrupted import corrupted
from corruption_recipes import clipped_zoom, drawn_angle, magick_blur
from photos import odd_images, photos
from random_fields import words
from skimage.filters import gaussian

from shiftcal import _kernels, corruptions
from shiftcal.corruptions.corruption import stream_keys
from shiftcal.corruptions.filters import line_steps, line_weights

# ---- defocus blur


SIZES = {"cifar": (32, 32), "tiny-imagenet": (64, 64), "imagenet": (224, 224)}
CASES = [(table, severity) for table in SIZES for severity in range(1, 6)]


def published_kernel(radius, sigma):
    reach, side = (8, 3) if radius <= 8 else (radius, 5)
    x, y = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
    disk = np.array(x**2 + y**2 <= radius**2, dtype=np.float32)
    return cv2.GaussianBlur(disk / disk.sum(), ksize=(side, side), sigmaX=sigma)


def defocused(image, kernel):
    """The published recipe."""
    channels = [cv2.filter2D(image[..., c] / 255.0, -1, kernel) for c in range(3)]
    return np.uint8(np.clip(np.stack(channels, axis=-1), 0, 1) * 255)


def differences_of_defocus_blur(images, severity, table):
    setting = corruptions.get("defocus_blur")().setting(severity, table=table)
    kernel = published_kernel(*setting)
    wanted = np.stack([defocused(image, kernel) for image in images])
    return corrupted(images, "defocus_blur", severity, table) - wanted.astype(int)


@pytest.mark.parametrize(("table", "severity"), CASES)
def test_is_within_one_level_of_opencv_and_mostly_equal(table, severity):
    off = differences_of_defocus_blur(photos(*SIZES[table]), severity, table)
    assert np.abs(off).max() <= 1
    # A mean of 5 (CIFAR, severity 4) or of 29 pixels (radius 3) is often a whole level, and then
    # the published kernel's rounding decides. All others are equal in 99 of 100 pixels.
    least = {("cifar", 4): 0.88, ("tiny-imagenet", 5): 0.95, ("imagenet", 1): 0.95}
    assert (off == 0).mean() > least.get((table, severity), 0.99)


@pytest.mark.parametrize(("table", "severity"), CASES)
@pytest.mark.parametrize("size", [(40, 52), (8, 21)])
def test_defocus_blur_is_within_one_level_on_odd_images_that_are_not_square(table, severity, size):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 2, (2, *size, 3), dtype=np.uint8) * np.uint8(255)
    images = np.concatenate([odd_images(*size), noise])
    assert np.abs(differences_of_defocus_blur(images, severity, table)).max() <= 1


# ---- gaussian blur


def blurred(image, sigma):
    """The published recipe."""
    return np.uint8(np.clip(gaussian(image / 255.0, sigma=sigma, channel_axis=-1), 0, 1) * 255)


def differences_of_gaussian_blur(images, severity, table):
    (sigma,) = corruptions.get("gaussian_blur")().setting(severity, table=table)
    wanted = np.stack([blurred(image, sigma) for image in images])
    return corrupted(images, "gaussian_blur", severity, table) - wanted.astype(int)


@pytest.mark.parametrize(("table", "severity"), CASES)
def test_is_within_one_level_of_scikit_image_and_mostly_equal(table, severity):
    off = differences_of_gaussian_blur(photos(*SIZES[table]), severity, table)
    assert np.abs(off).max() <= 1
    # Fixed point is off by about 0.01 of a level, on purpose rather above than below.
    assert (off == 0).mean() > 0.96


@pytest.mark.parametrize(("table", "severity"), CASES)
@pytest.mark.parametrize("size", [(40, 52), (8, 21)])
def test_gaussian_blur_is_within_one_level_on_odd_images_that_are_not_square(table, severity, size):
    assert np.abs(differences_of_gaussian_blur(odd_images(*size), severity, table)).max() <= 1


# ---- glass blur


GLASS_BLUR_SIZES = {"cifar": (32, 32), "tiny-imagenet": (64, 64), "imagenet": (60, 72)}
GLASS_BLUR_CASES = [(table, severity) for table in GLASS_BLUR_SIZES for severity in range(1, 6)]
GLASS = corruptions.get("glass_blur")()


def offsets(key, shape, distance, passes):
    """The displacements ``(passes, height, width)`` of an image, along x and along y."""
    bits = words(key, 0, passes * shape[0] * shape[1])
    low, high = (bits & 0xFFFF).astype(np.int64), (bits >> 16).astype(np.int64)
    drawn = [(2 * distance * half >> 16) - distance for half in (low, high)]
    return [part.reshape(passes, *shape) for part in drawn]


def glassed(image, moves, sigma, distance, passes):
    """The published recipe, with the displacements given."""

    def blurred(x):
        return gaussian(x / 255.0, sigma=sigma, channel_axis=-1)

    x = np.uint8(blurred(image) * 255)
    height, width = x.shape[:2]
    dx, dy = moves
    for t in range(passes):
        for h in range(height - distance, distance, -1):
            for w in range(width - distance, distance, -1):
                there = (h + dy[t, h, w], w + dx[t, h, w])
                x[h, w], x[there] = x[there], x[h, w]
    return np.uint8(np.clip(blurred(x), 0, 1) * 255)


def run(images, setting, keys):
    out = np.empty_like(images)
    GLASS._apply(images, out, GLASS._plan(setting, *images.shape[1:3]), keys)
    return out


def keys_for(n, severity=1):
    return stream_keys(seed=0, corruption="glass_blur", severity=severity, indices=np.arange(n))


@pytest.mark.parametrize(("table", "severity"), GLASS_BLUR_CASES)
@pytest.mark.parametrize("pictures", [photos, odd_images])
def test_is_the_published_recipe_given_the_same_displacements(table, severity, pictures):
    setting = GLASS.setting(severity, table=table)
    images = pictures(*GLASS_BLUR_SIZES[table])[::2]
    keys = stream_keys(
        seed=0, corruption="glass_blur", severity=severity, indices=np.arange(len(images))
    )
    wanted = [
        glassed(image, offsets(key, image.shape[:2], *setting[1:]), *setting)
        for image, key in zip(images, keys, strict=True)
    ]
    off = corrupted(images, "glass_blur", severity, table) - np.stack(wanted).astype(int)
    # A level more or less from each of the two blurs; hardly ever from both.
    assert np.abs(off).max() <= 2
    assert (np.abs(off) == 2).mean() < 1e-3
    if pictures is photos:
        assert (off == 0).mean() > 0.95


def test_an_image_too_small_to_be_displaced_is_only_blurred():
    # Distance 4 in 8 rows: none lies between.
    images = photos(8, 40)
    blur = (1.5, 4, 2)
    assert np.array_equal(run(images, blur, keys_for(4)), run(images, blur, keys_for(4, 2)))


# ---- motion blur


MOTION_BLUR_SIZES = [
    ("cifar", 8, 11),
    ("tiny-imagenet", 40, 52),
    ("imagenet", 276, 390),  # blurred in bands
]


def keys(severity, count, seed=0):
    return stream_keys(
        seed=seed, corruption="motion_blur", severity=severity, indices=np.arange(count)
    )


def angles(severity, count, seed=0):
    return [drawn_angle(key, 0, -45) for key in keys(severity, count, seed)]


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize(("table", "height", "width"), MOTION_BLUR_SIZES)
def test_every_value_is_the_recipes_at_the_angle_drawn(table, height, width, severity):
    images = np.concatenate([photos(height, width)[1:], odd_images(height, width)[2:5]])
    blurred = corrupted(images, "motion_blur", severity, table)
    radius, sigma = corruptions.MotionBlur.settings[table][severity - 1]
    expected = np.stack(
        [
            magick_blur(image, radius, sigma, angle)
            for image, angle in zip(images, angles(severity, len(images)), strict=True)
        ]
    )
    difference = np.abs(blurred.astype(int) - expected)
    assert difference.max() <= 1
    # The part of the line that is left out moves a value by 0.003 levels: one in 300 could tip.
    assert (difference == 0).mean() > 0.997


# The green values that ImageMagick 6.9.11 made of ``image`` below, as 8-bit pixels.
MAGICK = {
    (1000, 6, 2): [
        [110, 126, 142, 157, 172, 186, 196, 201],
        [190, 206, 148, 80, 95, 109, 119, 124],
        [125, 91, 107, 122, 137, 151, 161, 166],
        [187, 129, 62, 77, 92, 106, 116, 121],
        [80, 96, 112, 127, 142, 156, 166, 171],
        [192, 134, 67, 82, 97, 111, 121, 126],
        [85, 101, 117, 132, 147, 161, 171, 176],
        [197, 139, 72, 87, 102, 116, 126, 131],
    ],
    (3900, 10, 3): [
        [149, 118, 78, 93, 107, 120, 127, 131],
        [130, 145, 161, 117, 132, 144, 151, 155],
        [106, 67, 82, 98, 112, 124, 132, 135],
        [132, 148, 105, 120, 134, 146, 154, 157],
        [107, 67, 83, 98, 113, 125, 132, 136],
        [117, 132, 89, 104, 119, 131, 139, 142],
        [93, 53, 69, 84, 98, 111, 118, 122],
        [123, 83, 40, 55, 69, 82, 89, 93],
    ],
}


@pytest.mark.parametrize(("place", "radius", "sigma"), MAGICK)
def test_pixels_are_those_that_imagemagick_made(place, radius, sigma):
    image = (np.arange(192) * 89 % 251).astype(np.uint8).reshape(1, 8, 8, 3)
    weights = line_weights(radius, sigma)
    dx, dy = (np.tile(steps[place], (4096, 1)) for steps in line_steps(len(weights), -45))
    out = np.empty(image.shape, np.uint8)
    _kernels.blur_along_lines(image, out, weights, dx, dy, int(dx.max()), keys(1, 1))
    np.testing.assert_array_equal(out[0, :, :, 1], MAGICK[place, radius, sigma])
    oracle = magick_blur(image[0], radius, sigma, -45 + 90 * (place + 0.5) / 4096)
    np.testing.assert_array_equal(oracle[:, :, 1], MAGICK[place, radius, sigma])


# ---- zoom blur


ZOOM_BLUR_SIZES = [("cifar", 32, 32), ("tiny-imagenet", 40, 52), ("imagenet", 200, 150)]


def published(image, table, severity):
    count, step = corruptions.ZoomBlur.settings[table][severity - 1]
    factors = np.arange(1, 1 + (count - 0.5) * step, step)
    x = (image / 255.0).astype(np.float32)
    total = np.zeros_like(x)
    for factor in factors:
        total += clipped_zoom(x, factor)
    return np.uint8(np.clip((x + total) / (len(factors) + 1), 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize(("table", "height", "width"), ZOOM_BLUR_SIZES)
def test_every_value_is_the_recipes_within_a_level(table, height, width, severity):
    pictures = photos(height, width)[1:]
    images = np.concatenate([pictures, odd_images(height, width)])
    if height * width > 10_000:  # the oracle is slow
        images = images[[0, 1, 6, 8]]
    expected = np.stack([published(image, table, severity) for image in images])
    difference = np.abs(corrupted(images, "zoom_blur", severity, table).astype(int) - expected)
    assert difference.max() <= 1
    # The oracle adds up in float32, so that one value in some thousands is cut a level lower.
    assert (difference[:2] == 0).mean() > 0.998


@pytest.mark.parametrize("side", [32, 78, 139, 224])
@pytest.mark.parametrize("table", SIZES)
def test_flat_images_stay_as_they_are_and_no_border_turns_black(table, side):
    images = np.stack([np.full((side, side, 3), level, np.uint8) for level in (0, 1, 77, 255)])
    for severity in range(1, 6):
        np.testing.assert_array_equal(corrupted(images, "zoom_blur", severity, table), images)
