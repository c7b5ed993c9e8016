from __future__ import annotations

import cv2
import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photos
from skimage.filters import gaussian
from spatter_recipe import liquid_of, recipe

from shiftcal import corruptions
from shiftcal.corruptions._kernels.normal_table import normal_quantiles
from shiftcal.corruptions._keys import stream_keys

TABLES = {"cifar": (32, 32), "tiny-imagenet": (64, 64), "imagenet": (224, 224)}


def setting(table, severity):
    return corruptions.get("spatter")().setting(severity, table=table)


def drawn_field(height, width, severity, index=0, seed=0):
    """The standard normal field that image ``index`` gets."""
    from shiftcal.corruptions._kernels.spatter_kernels import fill_normals

    key = stream_keys(
        seed=seed, corruption="spatter", severity=severity, indices=np.array([index])
    )[0]
    out = np.empty(height * width, np.float32)
    fill_normals(out, normal_quantiles().astype(np.float32), key[0], key[1])
    return out.reshape(height, width).astype(np.float64)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_equals_the_published_recipe_on_the_same_field(table, severity):
    height, width = TABLES[table]
    count = {"cifar": 100, "tiny-imagenet": 40, "imagenet": 8}[table]
    base = np.concatenate([photos(height, width), odd_images(height, width)])
    images = np.resize(base, (count, height, width, 3))
    values = setting(table, severity)
    got = corrupted(images, "spatter", severity, table)
    want = np.stack(
        [
            recipe(image, drawn_field(height, width, severity, i), values)
            for i, image in enumerate(images)
        ]
    )
    off = np.abs(got.astype(int) - want)
    # The field is smoothed in float32, so that one pixel in some ten thousand falls on the other
    # side of a cut; with water other pixels can hang on that one. Mud is off by a level at most.
    assert (off > 0).mean() < 2e-4
    same = (off.reshape(count, -1).max(axis=1) == 0).mean()
    if values[-1]:
        assert off.max() <= 1
    elif table == "imagenet":
        assert same >= 0.6
    if table == "cifar":
        assert same >= 0.95


@pytest.mark.parametrize("shape", [(8, 8), (9, 14), (40, 52), (200, 150)])
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_equals_the_published_recipe_on_images_that_are_not_square(shape, severity):
    images = np.concatenate([photos(*shape), odd_images(*shape)])
    got = corrupted(images, "spatter", severity, "cifar")
    want = [
        recipe(image, drawn_field(*shape, severity, i), setting("cifar", severity))
        for i, image in enumerate(images)
    ]
    off = np.abs(got.astype(int) - np.stack(want))
    assert (off > 0).mean() < 2e-3
    assert off.mean() < 2e-3


def framed(plane, dtype):
    return np.pad(plane, 2).astype(dtype).reshape(-1)


def bare(plane, height, width):
    return plane.reshape(height + 4, width + 4)[2:-2, 2:-2]


def liquid_planes(height, width, count, seed):
    """Layers as they occur, pure noise, and smooth ramps that jump."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        noise = rng.normal(size=(height, width))
        if i % 4 == 0:
            yield rng.integers(0, 256, (height, width)).astype(np.uint8)
        elif i % 4 == 1:
            smooth = gaussian(noise, sigma=3) * 1000
            yield (smooth % 256).astype(np.uint8)
        else:
            layer = liquid_of(noise, 0.65, 0.3, rng.uniform(0.5, 2), 0.69)
            yield np.minimum(layer * 255, 255).astype(np.uint8)


SHAPES = [(8, 8), (9, 13), (32, 32), (37, 64), (120, 75)]


@pytest.mark.parametrize(("height", "width"), SHAPES)
def test_edges_are_those_of_opencv(height, width):
    from shiftcal.corruptions._kernels.canny_kernels import STRONG, edges

    size = (height + 4) * (width + 4)
    for levels in liquid_planes(height, width, 40, seed=0):
        state = np.full(size, 9, np.uint8)
        edges(
            framed(levels, np.int16), height, width, 50, 150, state, np.full((3, size), 9, np.int16)
        )
        found = bare(state, height, width) == STRONG
        np.testing.assert_array_equal(found, cv2.Canny(levels, 50, 150) > 0)


@pytest.mark.parametrize(("height", "width"), SHAPES)
def test_distances_are_those_of_opencv(height, width):
    from shiftcal.corruptions._kernels.chamfer_kernels import distances

    rng = np.random.default_rng(1)
    out = np.empty((height + 4) * (width + 4), np.float32)
    for share in [0.5, 0.1, 0.02, 0.002, 0]:
        mask = rng.random((height, width)) < share
        distances(framed(2 * mask, np.uint8), height, width, 20, out)
        want = cv2.distanceTransform(255 - 255 * mask.astype(np.uint8), cv2.DIST_L2, 5)
        want = np.minimum(want, 20)
        if cv2.ipp.useIPP():
            np.testing.assert_array_equal(bare(out, height, width), want)
        # Without IPP, OpenCV rounds each step to 2**-16: by 0.4 of that, twenty times at most.
        np.testing.assert_allclose(bare(out, height, width), want, atol=2e-4)


@pytest.mark.parametrize(("height", "width"), SHAPES)
def test_relief_is_that_of_opencv_step_by_step(height, width):
    from shiftcal.corruptions._kernels import relief_kernels as relief

    size = (height + 4) * (width + 4)
    out, sums = np.full(size, 999, np.int16), np.empty(size, np.int32)
    for levels in liquid_planes(height, width, 20, seed=2):
        distance = cv2.distanceTransform(255 - cv2.Canny(levels, 50, 150), cv2.DIST_L2, 5)
        distance = np.minimum(distance, 20)
        relief.box_distances(framed(distance, np.float32), height, width, sums, out)
        want = cv2.blur(distance, (3, 3)).astype(np.uint8)
        np.testing.assert_array_equal(bare(out, height, width), want)

        for plane in (want, levels):
            equal = framed(plane, np.int16)
            relief.equalize(equal, height, width, np.empty((4, 256), np.int32))
            even = cv2.equalizeHist(plane)
            np.testing.assert_array_equal(bare(equal, height, width), even)

            relief.emboss(framed(even, np.int16), height, width, out)
            kernel = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
            embossed = cv2.filter2D(even, cv2.CV_8U, kernel)
            np.testing.assert_array_equal(bare(out, height, width), embossed)

            relief.box_levels(
                framed(embossed, np.int16), height, width, np.empty(size, np.int16), out
            )
            np.testing.assert_array_equal(bare(out, height, width), cv2.blur(embossed, (3, 3)))


@pytest.mark.parametrize("level", [0, 1, 20, 255])
def test_a_flat_plane_is_not_equalised(level):
    from shiftcal.corruptions._kernels.relief_kernels import equalize

    plane = framed(np.full((8, 11), level), np.int16)
    equalize(plane, 8, 11, np.empty((4, 256), np.int32))
    assert (bare(plane, 8, 11) == level).all()


def test_field_is_standard_normal_and_white():
    field = drawn_field(512, 512, severity=1)
    n = field.size
    assert abs(field.mean()) < 4 / np.sqrt(n)
    assert abs(field.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((field**4).mean() - 3) < 4 * np.sqrt(96 / n)
    for other in (field[1:, :], field[:, 1:], field[1:, 1:], field[:, 2:]):
        here = field[: other.shape[0], : other.shape[1]]
        assert abs((here * other).mean()) < 4 / np.sqrt(other.size)


@pytest.mark.parametrize("severity", [1, 3, 4, 5])
def test_effect_has_the_distribution_of_the_published_recipe(severity):
    count = 400
    image = photos(32, 32)[1]
    got = corrupted(np.stack([image] * count), "spatter", severity, "cifar", seed=5)
    rng = np.random.default_rng(6)
    want = np.stack(
        [recipe(image, rng.normal(size=(32, 32)), setting("cifar", severity)) for _ in range(count)]
    )
    for summary in (
        lambda d: d.mean(axis=(1, 2, 3)),  # how much
        lambda d: (d != 0).any(axis=3).mean(axis=(1, 2)),  # on what part of the image
        lambda d: (d[:, 1:] * d[:, :-1]).mean(axis=(1, 2, 3)),  # how smooth
        lambda d: (d**2).mean(axis=(1, 2, 3)),
    ):
        a, b = (summary(x.astype(float) - image) for x in (got, want))
        error = np.sqrt((a.var() + b.var()) / count)
        assert abs(a.mean() - b.mean()) < 4 * error
        # Four standard errors of a ratio of deviations of near-normal values.
        assert abs(np.log(a.std() / b.std())) < 4 / np.sqrt(count)


def test_water_is_pale_turquoise_in_red_green_blue_order():
    black = np.zeros((20, 32, 32, 3), np.uint8)
    wet = corrupted(black, "spatter", 1, "cifar")
    brightest = wet.reshape(20, -1, 3).max(axis=1)
    # The brightest drop of every image has the light strength x colour.
    assert (brightest == [int(0.5 * 175), int(0.5 * 238), int(0.5 * 238)]).all()


def test_mud_is_brown_in_red_green_blue_order():
    black = np.zeros((50, 32, 32, 3), np.uint8)
    muddy = corrupted(black, "spatter", 5, "cifar").reshape(-1, 3)
    # Hardly a pixel has mud on all 25 around it, so the thickest falls just short and is cut.
    np.testing.assert_allclose(muddy.max(axis=0), [63, 42, 20], atol=1)


@pytest.mark.parametrize("sigma", [0.6, 1.5])
def test_mud_all_around_is_exactly_one(sigma):
    """If rounding left it below, whole blots would be cut to a level too low."""
    from shiftcal.corruptions._kernels.smooth_field_kernels import scratch_size, smooth_field
    from shiftcal.corruptions.spatter import _summing_to_one

    weights = _summing_to_one(sigma)
    field = np.ones((40, 30), np.float32)
    smooth_field(field, weights, 0, np.empty(scratch_size(40, 30, len(weights)), np.float32))
    assert (field == 1).all()


def test_mud_leaves_no_thin_veil():
    grey = np.full((20, 32, 32, 3), 200, np.uint8)
    muddy = corrupted(grey, "spatter", 5, "cifar")
    m = (200 - muddy[..., 0].astype(float)) / (200 - 63)
    assert ((m == 0) | (m > 0.79)).all()
    assert ((m > 0.79) & (m < 0.99)).any()


def test_a_field_above_one_begins_anew_at_zero():
    from shiftcal.corruptions._kernels.spatter_kernels import fill_liquid

    field = np.array([[254.9, 255.2, 256.1, 300.0, 175.0, 176.5, 0.0, 200.0]] * 8, np.float32)
    out = np.zeros(12 * 12, np.int16)
    levels = (np.float32(0), np.float32(0.69 * 255))
    fill_liquid(field, levels, out)
    np.testing.assert_array_equal(bare(out, 8, 8)[3], [254, 255, 0, 44, 0, 176, 0, 200])


def test_an_image_on_which_no_drop_falls_stays_as_it_is():
    """The published recipe divides by the light's maximum, which is 0 then."""
    images = np.concatenate([photos(8, 8)] * 100)
    severity = 1
    got = corrupted(images, "spatter", severity, "cifar")
    dry = [
        i
        for i in range(len(images))
        if liquid_of(drawn_field(8, 8, severity, i), *setting("cifar", severity)[:4]).max() == 0
    ]
    assert len(dry) > 10
    np.testing.assert_array_equal(got[dry], images[dry])
    assert (got != images).any(axis=(1, 2, 3)).sum() > 10
