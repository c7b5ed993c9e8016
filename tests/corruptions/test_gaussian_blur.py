"""Gaussian blur against scikit-image."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photos
from skimage.filters import gaussian

from shiftcal import corruptions

SIZES = {"cifar": (32, 32), "tiny-imagenet": (64, 64), "imagenet": (224, 224)}
CASES = [(table, severity) for table in SIZES for severity in range(1, 6)]


def blurred(image, sigma):
    """The published recipe."""
    return np.uint8(np.clip(gaussian(image / 255.0, sigma=sigma, channel_axis=-1), 0, 1) * 255)


def differences(images, severity, table):
    (sigma,) = corruptions.get("gaussian_blur")().setting(severity, table=table)
    wanted = np.stack([blurred(image, sigma) for image in images])
    return corrupted(images, "gaussian_blur", severity, table) - wanted.astype(int)


@pytest.mark.parametrize(("table", "severity"), CASES)
def test_is_within_one_level_of_scikit_image_and_mostly_equal(table, severity):
    off = differences(photos(*SIZES[table]), severity, table)
    assert np.abs(off).max() <= 1
    # Fixed point is off by about 0.01 of a level, on purpose rather above than below.
    assert (off == 0).mean() > 0.96


@pytest.mark.parametrize(("table", "severity"), CASES)
@pytest.mark.parametrize("size", [(40, 52), (52, 40)])
def test_is_within_one_level_on_odd_images_that_are_not_square(table, severity, size):
    assert np.abs(differences(odd_images(*size), severity, table)).max() <= 1


@pytest.mark.parametrize("size", [(200, 150), (8, 8), (8, 21), (17, 9)])
@pytest.mark.parametrize("severity", [1, 5])
def test_kernels_wider_than_the_image_repeat_its_last_pixels(size, severity):
    assert np.abs(differences(photos(*size), severity, "imagenet")).max() <= 1


@pytest.mark.parametrize(("table", "severity"), CASES)
def test_images_of_one_colour_stay_as_they_are(table, severity):
    levels = np.arange(256, dtype=np.uint8).reshape(-1, 1, 1, 1)
    images = np.ascontiguousarray(np.broadcast_to(levels, (256, 12, 9, 3)))
    assert np.array_equal(corrupted(images, "gaussian_blur", severity, table), images)


def test_is_cut_not_rounded():
    # Half of the pixels are 0, half are 1: every blurred value is below 1, so nothing is left.
    board = np.indices((32, 32)).sum(axis=0) % 2
    image = np.repeat(board[..., None], 3, axis=2).astype(np.uint8)[None]
    assert corrupted(image, "gaussian_blur", 5, "cifar").max() == 0


def test_channels_do_not_mix():
    image = np.zeros((1, 32, 32, 3), np.uint8)
    image[0, 10:20, 10:20, 1] = 255
    out = corrupted(image, "gaussian_blur", 5, "cifar")
    assert out[..., 1].max() > 200
    assert out[..., [0, 2]].max() == 0
