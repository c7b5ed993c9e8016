"""Motion blur against ImageMagick's recipe, and its randomness."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from magick_blur import drawn_angle, magick_blur, unrounded_blur
from photos import odd_images, photo, photos
from scipy import stats

from shiftcal.corruptions import MotionBlur
from shiftcal.corruptions._kernels.line_taps import line_steps, line_weights
from shiftcal.corruptions._keys import stream_keys
from shiftcal.numerics._jit import to_read

PUBLISHED = {
    "cifar": [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
    "tiny-imagenet": [(10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)],
    "imagenet": [(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)],
}
SIZES = [
    ("cifar", 32, 32),
    ("cifar", 40, 52),
    ("cifar", 8, 11),
    ("tiny-imagenet", 64, 64),
    ("imagenet", 224, 224),
    ("imagenet", 200, 150),
    ("imagenet", 276, 390),  # blurred in bands
]


def keys(severity, count, seed=0):
    return stream_keys(
        seed=seed, corruption="motion_blur", severity=severity, indices=np.arange(count)
    )


def angles(severity, count, seed=0):
    return [drawn_angle(key, 0, -45) for key in keys(severity, count, seed)]


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize(("table", "height", "width"), SIZES)
def test_every_value_is_the_recipes_at_the_angle_drawn(table, height, width, severity):
    images = np.concatenate([photos(height, width)[1:], odd_images(height, width)[2:5]])
    blurred = corrupted(images, "motion_blur", severity, table)
    radius, sigma = PUBLISHED[table][severity - 1]
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


@pytest.mark.parametrize("table", PUBLISHED)
def test_the_settings_are_the_published_ones(table):
    assert list(MotionBlur.settings[table]) == PUBLISHED[table]


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
    from shiftcal.corruptions._kernels.motion_blur_kernels import blur_along_lines

    image = to_read((np.arange(192) * 89 % 251).astype(np.uint8).reshape(1, 8, 8, 3))
    weights = line_weights(radius, sigma)
    dx, dy = (np.tile(steps[place], (4096, 1)) for steps in line_steps(len(weights), -45))
    out = np.empty(image.shape, np.uint8)
    blur_along_lines(image, out, weights, dx, dy, int(dx.max()), keys(1, 1))
    np.testing.assert_array_equal(out[0, :, :, 1], MAGICK[place, radius, sigma])
    oracle = magick_blur(image[0], radius, sigma, -45 + 90 * (place + 0.5) / 4096)
    np.testing.assert_array_equal(oracle[:, :, 1], MAGICK[place, radius, sigma])


def test_light_moves_to_the_left_only():
    image = np.zeros((20, 41, 40, 3), np.uint8)
    image[:, 20, 20] = 255
    blurred = corrupted(image, "motion_blur", 5, "cifar")
    assert blurred[:, :, 21:].max() == 0
    assert (blurred[:, :, :20].max(axis=(1, 2, 3)) > 0).all()


def test_values_are_rounded_not_cut():
    image = photo(224, 224)
    blurred = corrupted(image[None], "motion_blur", 3, "imagenet")[0]
    exact = unrounded_blur(image, 15, 8, angles(3, 1)[0])
    # The mean of 150,528 rounding errors has a deviation of 0.0008; cutting would give -0.5.
    assert abs((blurred - exact).mean()) < 0.01


def test_flat_images_stay_as_they_are():
    images = np.stack([np.full((33, 20, 3), level, np.uint8) for level in range(256)])
    for severity in range(1, 6):
        np.testing.assert_array_equal(corrupted(images, "motion_blur", severity, "cifar"), images)


def test_angles_are_uniform_between_minus_45_and_45_degrees():
    drawn = np.array(angles(2, 4000, seed=5))
    assert drawn.min() > -45
    assert drawn.max() < 45
    # A right generator fails once in 1,000 seeds; this seed does not.
    assert stats.kstest(drawn, "uniform", (-45, 90)).pvalue > 1e-3


@pytest.mark.parametrize("start", [-45, -135])
def test_no_step_of_the_line_is_decided_by_the_last_digits_of_a_sine(start):
    degrees = np.deg2rad(start + 90 * (np.arange(4096) + 0.5) / 4096)
    for wave in (np.cos(degrees), np.sin(degrees)):
        places = np.outer(wave, np.arange(1, 48))
        to_half = np.abs(places - np.floor(places) - 0.5)
        # Mathematical libraries differ by some 1e-15.
        assert to_half.min() > 1e-9


def test_the_weights_are_half_a_gaussian_cut_where_nothing_is_left():
    weights = line_weights(10, 3)
    full = np.exp(-(np.arange(21) ** 2) / 18)
    full /= full.sum()
    kept = np.count_nonzero(weights)
    assert full[kept:].sum() < 1e-5 <= full[kept - 1 :].sum()
    np.testing.assert_allclose(weights[:kept], full[:kept], atol=1e-5)  # what was cut off
    assert np.count_nonzero(line_weights(20, 15)) == 41
