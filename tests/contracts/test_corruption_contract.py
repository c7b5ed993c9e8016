"""Promises of every corruption."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photos

import shiftcal as sc
from shiftcal import corruptions
from shiftcal.corruptions.corruption import SeverityTable

NAMES = corruptions.names()
TABLES = ("cifar", "tiny-imagenet", "imagenet")
PAPER = [
    "brightness",
    "contrast",
    "defocus_blur",
    "elastic_transform",
    "fog",
    "frost",
    "gaussian_blur",
    "gaussian_noise",
    "glass_blur",
    "impulse_noise",
    "pixelate",
    "saturate",
    "shot_noise",
    "spatter",
    "speckle_noise",
    "zoom_blur",
]


def test_all_nineteen_are_there():
    assert sorted([*PAPER, "motion_blur", "snow", "jpeg_compression"]) == NAMES


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_it_carries_its_name_and_says_what_it_does(name):
    found = corruptions.get(name)
    assert found().name == name
    assert found.__name__ == name.replace("_", " ").title().replace(" ", "")
    assert getattr(corruptions, found.__name__) is found
    assert len(inspect.getdoc(found).splitlines()) >= 3
    assert found.group in ("noise", "blur", "weather", "digital")


def test_every_table_has_five_settings_of_one_length(name):
    settings = corruptions.get(name).settings
    assert isinstance(settings, SeverityTable)
    for table in TABLES:
        assert len(settings[table]) == 5
        assert len({len(setting) for setting in settings[table]}) == 1


@pytest.mark.parametrize("shape", [(8, 8), (8, 33), (32, 32), (40, 27), (64, 96)])
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_any_size_comes_back_as_uint8_of_the_same_shape_and_the_input_is_untouched(
    name, shape, severity
):
    images = np.concatenate([photos(*shape), odd_images(*shape)])
    kept = images.copy()
    images.flags.writeable = False
    made = sc.corrupt(images, name, severity=severity, seed=3)
    assert made.dtype == np.uint8
    assert made.shape == images.shape
    assert np.array_equal(images, kept)
    # The copies of a slight zoom blur, cut to whole pixels, are the image itself at 8 pixels.
    assert not np.array_equal(made[:4], images[:4]) or (name, shape) == ("zoom_blur", (8, 8))


def test_the_large_table_works_on_an_image_that_is_not_square(name):
    images = photos(150, 230)[:2]
    for severity in range(1, 6):
        made = corrupted(images, name, severity, "imagenet")
        assert made.shape == images.shape
        assert made.std() > 0


def test_severity_nought_is_the_image_itself(name):
    images = photos(24, 40)
    made = sc.corrupt(images, name, severity=0)
    assert np.array_equal(made, images)
    assert not np.shares_memory(made, images)


@pytest.mark.parametrize("side", [32, 224])
def test_batch_order_split_and_threads_change_no_pixel(name, side):
    n = 150 if side == 32 else 5
    images = np.random.default_rng(5).integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    images[: min(n, 4)] = photos(side, side)[: min(n, 4)]
    whole = sc.corrupt(images, name, severity=4, seed=11, threads=1)
    assert np.array_equal(sc.corrupt(images, name, severity=4, seed=11, threads=3), whole)
    last = n - 1
    alone = sc.corrupt(images[last], name, severity=4, seed=11, first_index=last)
    assert np.array_equal(alone, whole[last])
    rest = sc.corrupt(images[2:], name, severity=4, seed=11, first_index=2)
    assert np.array_equal(rest, whole[2:])


def test_a_seed_fixes_the_pixels_and_another_gives_others_only_if_it_is_random(name):
    images = photos(32, 32)
    first, again, other = (sc.corrupt(images, name, severity=5, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert np.array_equal(first, other) != corruptions.get(name).random


def test_two_copies_of_an_image_differ_only_if_it_is_random(name):
    twice = np.repeat(photos(48, 40)[:1], 2, axis=0)
    made = sc.corrupt(twice, name, severity=5, seed=4)
    assert np.array_equal(made[0], made[1]) != corruptions.get(name).random


@pytest.mark.parametrize(("side", "table"), [(32, "cifar"), (64, "tiny-imagenet")])
def test_the_mean_distortion_grows_with_severity_where_it_is_said_to(name, side, table):
    images = np.repeat(photos(side, side), 30, axis=0)
    mean = [
        np.abs(corrupted(images, name, severity, table) - images.astype(float)).mean()
        for severity in range(1, 6)
    ]
    if corruptions.get(name).monotone:
        assert np.all(np.diff(mean) > 0), mean
    assert min(mean) > 0


def test_an_image_cut_out_of_a_larger_array_is_read_right(name):
    images = photos(40, 64)
    part = images[::2, 3:35, 5:37]
    assert not part.flags.c_contiguous
    expected = sc.corrupt(np.ascontiguousarray(part), name, severity=2)
    assert np.array_equal(sc.corrupt(part, name, severity=2), expected)


def test_a_grey_image_is_the_green_channel_of_its_colour_image(name):
    grey = photos(33, 40)[..., 1]
    colour = sc.corrupt(np.repeat(grey[..., None], 3, axis=3), name, severity=3, seed=2)
    assert np.array_equal(sc.corrupt(grey, name, severity=3, seed=2), colour[..., 1])
