"""Fog, against the diamond-square recipe written out with numpy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from corrupted import corrupted
from image_streams import image_keys, symmetric_halves, words
from photos import odd_images, photos
from scipy import stats

from shiftcal.corruptions import Fog
from shiftcal.corruptions._kernels.fog_kernels import plasma_map

PUBLISHED = {
    "cifar": [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
    "tiny-imagenet": [(0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)],
    "imagenet": [(1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)],
}
SIZES = [
    ("cifar", 32, 32, 32),
    ("cifar", 20, 27, 32),
    ("cifar", 40, 52, 64),
    ("tiny-imagenet", 64, 64, 64),
    ("tiny-imagenet", 45, 80, 128),
    ("imagenet", 224, 224, 256),
    ("imagenet", 200, 150, 256),
    ("imagenet", 128, 300, 512),
]


def plasma(side, decay, uniform):
    """The published map, unscaled; ``uniform(kind, n)`` gives ``(n, n)`` numbers in (-1, 1)."""
    points = np.zeros((1, 1))
    wibble = 100.0
    while len(points) < side:
        n = len(points)
        to_right, to_below = np.roll(points, -1, axis=1), np.roll(points, -1, axis=0)
        middle = (points + to_right + to_below + np.roll(to_below, -1, axis=1)) / 4
        middle = middle + wibble * (wibble * uniform("middle", n))
        right = (middle + np.roll(middle, 1, axis=0) + points + to_right) / 4
        right = right + wibble * (wibble * uniform("right", n))
        below = (middle + np.roll(middle, 1, axis=1) + points + to_below) / 4
        below = below + wibble * (wibble * uniform("below", n))
        finer = np.empty((2 * n, 2 * n))
        finer[::2, ::2], finer[::2, 1::2] = points, right
        finer[1::2, ::2], finer[1::2, 1::2] = below, middle
        points = finer
        wibble /= decay
    return points


def same_numbers(key):
    """The numbers the kernel draws for the stream with this key."""

    def uniform(kind, n):
        if kind == "below":
            return symmetric_halves(words(key, 3 * n * n, n * n))[0].reshape(n, n)
        middle, right = symmetric_halves(words(key, 2 * n * n, n * n))
        return (middle if kind == "middle" else right).reshape(n, n)

    return uniform


def numpy_numbers(rng):
    return lambda _, n: rng.uniform(-1, 1, (n, n))


def foggy(image, strength, decay, side, uniform):
    """The published recipe in double precision."""
    x = image / 255.0
    height, width = x.shape[:2]
    cloud = plasma(side, decay, uniform)
    cloud = (cloud - cloud.min()) / (cloud.max() - cloud.min())
    top = x.max()
    x = x + strength * cloud[:height, :width, None]
    return np.uint8(np.clip(x * top / (top + strength), 0, 1) * 255)


@pytest.mark.parametrize(("table", "height", "width", "side"), SIZES)
def test_fog_is_the_published_one_given_the_same_random_numbers(table, height, width, side):
    images = np.concatenate([photos(height, width), odd_images(height, width)])
    for severity, (strength, decay) in enumerate(PUBLISHED[table], start=1):
        got = corrupted(images, "fog", severity, table)
        keys = image_keys("fog", severity, len(images))
        expected = np.stack(
            [
                foggy(image, strength, decay, side, same_numbers(key))
                for image, key in zip(images, keys, strict=True)
            ]
        )
        difference = np.abs(got.astype(int) - expected)
        assert difference.max() <= 1
        # single precision moves a value by about 1e-4 levels, and that many lie at an edge
        assert (difference > 0).mean() < 5e-4


def test_map_is_the_published_one_given_the_same_random_numbers():
    amplitudes, _ = Fog()._plan((1, 1.4, 256), 224, 224)
    key = image_keys("fog", 1, 1)[0]
    expected = plasma(256, 1.4, same_numbers(key))
    # heights of 1e4 in single precision
    np.testing.assert_allclose(plasma_map(amplitudes, *key), expected, atol=0.02, rtol=0)


def scaled_maps(draw, n):
    maps = np.stack([draw(i) for i in range(n)])
    low, high = maps.min(axis=(1, 2), keepdims=True), maps.max(axis=(1, 2), keepdims=True)
    return (maps - low) / (high - low)


def test_maps_are_those_of_the_recipe_in_distribution():
    amplitudes, _ = Fog()._plan((1, 2, 32), 32, 32)
    keys = image_keys("fog", 4, 1500, seed=5)
    rng = np.random.default_rng(0)
    ours = scaled_maps(lambda i: plasma_map(amplitudes, *keys[i]), 1500)
    theirs = scaled_maps(lambda _: plasma(32, 2, numpy_numbers(rng)), 1500)
    # one number a map, so that the numbers are independent; p-values of right code are uniform
    for summary in (
        lambda maps: maps.mean(axis=(1, 2)),
        lambda maps: maps.std(axis=(1, 2)),
        lambda maps: maps[:, 5, 9],
        lambda maps: np.abs(np.diff(maps, axis=2)).mean(axis=(1, 2)),
        lambda maps: np.abs(maps[:, 8:] - maps[:, :-8]).mean(axis=(1, 2)),
    ):
        assert stats.ks_2samp(summary(ours), summary(theirs)).pvalue > 1e-3
    # correlations of points over maps have a standard error of 1500**-0.5
    points = [(0, 0), (16, 16), (16, 3), (31, 0), (7, 22)]
    rows, columns = zip(*points, strict=True)
    correlation = [np.corrcoef(maps[:, rows, columns].T) for maps in (ours, theirs)]
    np.testing.assert_allclose(*correlation, atol=5 * 2**0.5 * 1500**-0.5)


def test_foggy_images_have_the_levels_of_the_recipe_in_distribution():
    image = photos(32, 32)[0]
    rng = np.random.default_rng(1)
    ours = corrupted(np.repeat(image[None], 600, axis=0), "fog", 3, "cifar")
    theirs = np.stack([foggy(image, 0.75, 2.5, 32, numpy_numbers(rng)) for _ in range(600)])
    for pick in (lambda x: x.mean(axis=(1, 2, 3)), lambda x: x[:, 12, 20, 1].astype(float)):
        assert stats.ks_2samp(pick(ours), pick(theirs)).pvalue > 1e-3


def test_black_stays_black():
    black = np.zeros((2, 40, 33, 3), np.uint8)
    for severity in range(1, 6):
        assert not corrupted(black, "fog", severity, "cifar").any()


def test_gain_uses_the_brightest_value_before_the_fog():
    """A grey image ends between m/(1 + c/m) and m: never brighter than it was."""
    grey = np.full((8, 32, 32, 3), 100, np.uint8)
    foggy = corrupted(grey, "fog", 5, "cifar")
    low = int(100 * 100 / (100 + 255 * 1.5))
    # the full map is used at the table's size, so both ends of it are reached
    assert (foggy.min(axis=(1, 2, 3)) == low).all()
    assert (foggy.max(axis=(1, 2, 3)) == 100).all()


def test_range_is_that_of_the_whole_map_even_where_it_is_cut():
    white = np.full((8, 60, 60, 3), 255, np.uint8)
    foggy = corrupted(white, "fog", 2, "imagenet")
    # the corner is a twentieth of the map, and rarely has one of its ends
    assert (foggy.max(axis=(1, 2, 3)) < 255).sum() >= 6
    assert (foggy.min(axis=(1, 2, 3)) > 255 // 3).sum() >= 6


def test_wibble_enters_squared():
    amplitudes, _ = Fog()._plan((1, 2.5, 32), 32, 32)
    np.testing.assert_allclose(amplitudes, [1e4 / 2.5 ** (2 * level) for level in range(5)])
    keys = image_keys("fog", 1, 400, seed=2)
    middles = np.array([plasma_map(amplitudes[:1], *key)[1, 1] for key in keys])
    # uniform in (-1e4, 1e4); 400 draws give the standard deviation to 2.2 %
    assert np.std(middles) == pytest.approx(1e4 / 3**0.5, rel=0.1)


def test_map_closes_to_a_torus():
    amplitudes, _ = Fog()._plan((1, 2, 256), 224, 224)
    maps = np.stack([plasma_map(amplitudes, *key) for key in image_keys("fog", 1, 20)])
    neighbours = np.abs(maps[:, :, 1] - maps[:, :, 0]).mean()
    across = np.abs(maps[:, :, 0] - maps[:, :, -1]).mean()
    apart = np.abs(maps[:, :, 0] - maps[:, :, 100]).mean()
    assert across < 2 * neighbours < apart / 4


def test_maps_grow_to_4096_and_no_further():
    sides = {
        longer: 2 ** len(Fog()._plan((1, 2, 32), 8, longer)[0])
        for longer in (32, 33, 2048, 2049, 4096, 4097, 10_000)
    }
    assert sides == {
        32: 32, 33: 64, 2048: 2048, 2049: 4096, 4096: 4096, 4097: 4096, 10_000: 4096,
    }  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
def test_beyond_4096_the_map_is_repeated_without_a_seam(turned):
    shape = (1, 5000, 8, 3) if turned else (1, 8, 5000, 3)
    foggy = corrupted(np.full(shape, 255, np.uint8), "fog", 2, "tiny-imagenet")[0, ..., 0]
    foggy = (foggy.T if turned else foggy).astype(int)
    np.testing.assert_array_equal(foggy[:, 4096:], foggy[:, : 5000 - 4096])
    steps = np.abs(np.diff(foggy, axis=1)).max(axis=0)
    # a map of this side is smooth at a decay of 3, so that only a seam would have a large step
    assert steps.max() <= 3
    assert np.ptp(foggy) > 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_long_narrow_image_is_fogged_in_bounded_memory():
    # 80 MB for the map, and about 200 MB for the process, numba and scipy included; a map that
    # covers 10,000 pixels would be 1.3 GB.
    code = """
import numpy as np, shiftcal as sc
sc.corrupt(np.zeros((8, 10_000, 3), np.uint8), "fog", severity=1, threads=1)
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 450
