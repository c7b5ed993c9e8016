"""Glass blur against the published loop, given the same displacements, and in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photos
from skimage.filters import gaussian

from shiftcal import corruptions
from shiftcal.corruptions._kernels.counter_kernels import fill_words
from shiftcal.corruptions._keys import stream_keys

SIZES = {"cifar": (32, 32), "tiny-imagenet": (64, 64), "imagenet": (60, 72)}
CASES = [(table, severity) for table in SIZES for severity in range(1, 6)]
GLASS = corruptions.get("glass_blur")()


def offsets(key, shape, distance, passes):
    """The displacements ``(passes, height, width)`` of an image, along x and along y."""
    words = np.empty(passes * shape[0] * shape[1], np.uint32)
    fill_words(words, 0, key[0], key[1])
    low, high = (words & 0xFFFF).astype(np.int64), (words >> 16).astype(np.int64)
    drawn = [(2 * distance * bits >> 16) - distance for bits in (low, high)]
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


@pytest.mark.parametrize(("table", "severity"), CASES)
@pytest.mark.parametrize("pictures", [photos, odd_images])
def test_is_the_published_recipe_given_the_same_displacements(table, severity, pictures):
    setting = GLASS.setting(severity, table=table)
    images = pictures(*SIZES[table])[::2]
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


@pytest.mark.parametrize("distance", [1, 2, 3, 4])
@pytest.mark.parametrize("passes", [1, 3])
def test_displaced_pixels_are_exactly_those_of_the_published_loop(distance, passes):
    images = photos(30, 41)[:2]
    keys = keys_for(2)
    setting = (0.05, distance, passes)  # which does not blur
    out = run(images, setting, keys)
    for image, key, found in zip(images, keys, out, strict=True):
        moves = offsets(key, image.shape[:2], distance, passes)
        assert np.array_equal(found, glassed(image, moves, *setting))


def test_a_pixel_is_copied_and_the_other_stays():
    # All pixels are different. Had they changed places, all would still be there.
    image = np.arange(32 * 32 * 3).reshape(1, 32, 32, 3).astype(np.uint8)
    image[..., 1] = np.arange(32)[:, None]
    image[..., 2] = np.arange(32)
    out = run(image, (0.05, 1, 1), keys_for(1))
    assert len({tuple(pixel) for pixel in out.reshape(-1, 3)}) < 0.8 * 32 * 32


def where_from(distance, passes=1, size=(40, 46), n=60):
    """Where each pixel of ``n`` displaced images came from, relative to itself: (2, n, h, w)."""
    height, width = size
    image = np.zeros((n, height, width, 3), np.uint8)
    image[..., 0] = np.arange(height)[:, None]
    image[..., 1] = np.arange(width)
    out = run(image, (0.05, distance, passes), keys_for(n)).astype(int)
    return np.stack([out[..., 0] - np.arange(height)[:, None], out[..., 1] - np.arange(width)])


def test_the_upper_end_of_the_displacements_is_left_out():
    # With distance 1 no pixel that is read was written before, so that these are the draws.
    inside = where_from(1)[:, :, 2:, 2:]
    assert set(inside.ravel()) == {-1, 0}
    for dy in (-1, 0):
        for dx in (-1, 0):
            share = ((inside[0] == dy) & (inside[1] == dx)).mean()
            # 103,000 draws: the standard error is 0.0013.
            assert share == pytest.approx(0.25, abs=0.006)


@pytest.mark.parametrize("distance", [1, 2, 3, 4])
def test_rows_and_columns_up_to_the_distance_never_move(distance):
    moved = where_from(distance, passes=3).any(axis=(0, 1))
    inside = slice(distance + 1, 40 - distance + 1), slice(distance + 1, 46 - distance + 1)
    assert moved[inside].all()
    moved[inside] = False
    assert not moved.any()


@pytest.mark.parametrize("distance", [2, 3, 4])
def test_where_pixels_come_from_has_the_distribution_of_the_published_loop(distance):
    # The reference draws from numpy's own generator.
    rng = np.random.default_rng(7)
    size = (24, 26)
    image = np.zeros((*size, 3), np.uint8)
    image[..., 0], image[..., 1] = np.arange(24)[:, None], np.arange(26)
    theirs = []
    for _ in range(40):
        moves = rng.integers(-distance, distance, (2, 1, *size))
        out = glassed(image, moves, 0.05, distance, 1).astype(int)
        theirs.append(np.stack([out[..., 0] - image[..., 0], out[..., 1] - image[..., 1]]))
    theirs = np.stack(theirs, axis=1)
    ours = where_from(distance, size=size, n=400)
    inside = (..., slice(6, 18), slice(6, 20))
    for axis in (0, 1):
        a, b = theirs[axis][inside].ravel(), ours[axis][inside].ravel()
        # 6,700 pixels of the reference, in clusters of a few that are copies of one.
        assert b.mean() == pytest.approx(a.mean(), abs=0.15 * distance**0.5)
        assert b.std() == pytest.approx(a.std(), rel=0.06)
        levels = np.arange(-12, 13)
        gap = (a[:, None] <= levels).mean(axis=0) - (b[:, None] <= levels).mean(axis=0)
        assert np.abs(gap).max() < 0.035


def test_draws_are_independent_from_pixel_to_pixel_and_image_to_image():
    draws = where_from(1)[:, :, 2:, 2:] + 0.5
    for a, b in (
        (draws[0], draws[1]),
        (draws[..., :-1], draws[..., 1:]),
        (draws[..., :-1, :], draws[..., 1:, :]),
        (draws[:, :-1], draws[:, 1:]),
    ):
        # At least 98,000 products of +-1/4: the standard error of the correlation is 0.003.
        assert abs((a * b).mean() / 0.25) < 0.013


def test_images_of_one_colour_stay_as_they_are():
    levels = np.arange(0, 256, 5, dtype=np.uint8).reshape(-1, 1, 1, 1)
    images = np.ascontiguousarray(np.broadcast_to(levels, (52, 16, 19, 3)))
    for table, severity in CASES:
        assert np.array_equal(corrupted(images, "glass_blur", severity, table), images)


def test_an_image_too_small_to_be_displaced_is_only_blurred():
    # Distance 4 in 8 rows: none lies between.
    images = photos(8, 40)
    blur = (1.5, 4, 2)
    assert np.array_equal(run(images, blur, keys_for(4)), run(images, blur, keys_for(4, 2)))
