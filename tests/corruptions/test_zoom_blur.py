"""Zoom blur against the published recipe with scipy's zoom."""

from __future__ import annotations

import numpy as np
import pytest
from clipped_zoom import clipped_zoom
from corrupted import corrupted
from photos import odd_images, photos

from shiftcal.corruptions import ZoomBlur
from shiftcal.corruptions._kernels.zoom_plan import copy_taps, pixel_taps

SMALL_TABLE = [(1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)]
ENDS = {
    "cifar": SMALL_TABLE,
    "tiny-imagenet": SMALL_TABLE,
    "imagenet": [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
}
SIZES = [
    ("cifar", 32, 32),
    ("cifar", 40, 52),
    ("cifar", 9, 31),
    ("tiny-imagenet", 64, 64),
    ("imagenet", 224, 224),
    ("imagenet", 200, 150),
]


def published(image, table, severity):
    end, step = ENDS[table][severity - 1]
    factors = np.arange(1, end, step)
    x = (image / 255.0).astype(np.float32)
    total = np.zeros_like(x)
    for factor in factors:
        total += clipped_zoom(x, factor)
    return np.uint8(np.clip((x + total) / (len(factors) + 1), 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize(("table", "height", "width"), SIZES)
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


def test_the_counts_are_those_of_numpys_ranges_with_their_rounding():
    for table, ends in ENDS.items():
        for (count, step), (end, gap) in zip(ZoomBlur.settings[table], ends, strict=True):
            factors = np.arange(1, end, gap)
            assert (count, step) == (len(factors), gap)
            np.testing.assert_array_equal(1 + np.arange(count) * ((1 + step) - 1), factors)


@pytest.mark.parametrize(
    ("table", "severity", "last"),
    [("cifar", 1, 1.06), ("cifar", 2, 1.11), ("cifar", 3, 1.15), ("imagenet", 1, 1.11)],
)
def test_the_end_of_the_range_is_inside_where_rounding_put_it_there(table, severity, last):
    count, step = ZoomBlur.settings[table][severity - 1]
    assert 1 + (count - 1) * step == pytest.approx(last)


def test_the_image_itself_is_in_the_mean_twice():
    image = np.zeros((1, 224, 224, 3), np.uint8)
    image[0, 0, 0] = 255  # outside the middle that is enlarged, already by 1.03
    corner = corrupted(image, "zoom_blur", 5, "imagenet")[0, 0, 0]
    assert (corner == int(255 * 2 / 12)).all()


@pytest.mark.parametrize("side", [32, 78, 139, 224])
@pytest.mark.parametrize("table", ENDS)
def test_flat_images_stay_as_they_are_and_no_border_turns_black(table, side):
    images = np.stack([np.full((side, side, 3), level, np.uint8) for level in (0, 1, 77, 255)])
    for severity in range(1, 6):
        np.testing.assert_array_equal(corrupted(images, "zoom_blur", severity, table), images)


def test_small_and_large_images_go_by_the_same_rule():
    from shiftcal.corruptions._kernels.zoom_blur_kernels import sum_copies, sum_pixel_taps
    from shiftcal.numerics._jit import to_read

    images = to_read(photos(70, 90))
    factors = np.arange(1, 1.26, 0.01)
    one, other = np.empty(images.shape, np.uint8), np.empty(images.shape, np.uint8)
    sum_pixel_taps(
        images.reshape(4, 6300, 3), one.reshape(4, 6300, 3), *pixel_taps(factors, 70, 90)
    )
    plan = copy_taps(factors, 70, 90)
    shape = (4, 70, 270)
    sum_copies(images.reshape(shape), other.reshape(shape), plan[:2], plan[2:6], plan.own_weight)
    difference = np.abs(one.astype(int) - other)
    assert difference.max() <= 1
    assert (difference == 0).mean() > 0.999  # float32 sums in another order


def test_groups_of_images_are_blurred_as_each_alone():
    images = np.concatenate([photos(24, 40)] * 9 + [odd_images(24, 40)])  # 42: two groups and more
    together = corrupted(images, "zoom_blur", 4, "cifar")
    for k in (0, 17, 35, 41):
        np.testing.assert_array_equal(
            corrupted(images[k : k + 1], "zoom_blur", 4, "cifar")[0], together[k]
        )


def test_nothing_is_random():
    images = photos(32, 32)
    assert not ZoomBlur.random
    np.testing.assert_array_equal(
        corrupted(images, "zoom_blur", 3, "cifar", seed=1),
        corrupted(images, "zoom_blur", 3, "cifar", seed=2),
    )
