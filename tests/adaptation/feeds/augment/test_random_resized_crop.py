"""Random parts of images: Pillow's pixels, and the boxes that another library draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from photos import photo
from PIL import Image

from shiftcal.adaptation.feeds.augment.random_resized_crop import Box, RandomResizedCrop

PHOTO = photo(90, 120)


def boxes(crop, height, width, n=3000):
    rng = np.random.default_rng(5)
    return [crop.box(height, width, rng) for _ in range(n)]


@pytest.mark.parametrize("seed", range(6))
def test_the_part_is_cut_out_and_resized_as_pillow_does_it(seed):
    crop = RandomResizedCrop(64)
    top, left, height, width = crop.box(90, 120, np.random.default_rng(seed))
    part = Image.fromarray(PHOTO).crop((left, top, left + width, top + height))
    wanted = np.asarray(part.resize((64, 64), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(crop(PHOTO, np.random.default_rng(seed)), wanted)


def test_the_image_is_not_changed():
    before = PHOTO.copy()
    RandomResizedCrop(32)(PHOTO, np.random.default_rng(0))
    np.testing.assert_array_equal(PHOTO, before)


@pytest.mark.parametrize(("height", "width"), [(256, 256), (90, 120), (40, 31)])
def test_every_box_is_inside_and_has_an_allowed_area_and_proportion(height, width):
    for top, left, h, w in boxes(RandomResizedCrop(224), height, width):
        assert 0 <= top <= height - h
        assert 0 <= left <= width - w
        # Half a pixel of rounding on each side of the smallest boxes.
        assert 0.08 * 0.85 <= h * w / (height * width) <= 1
        assert 3 / 4 * 0.88 <= w / h <= 4 / 3 * 1.12


def test_areas_are_uniform_where_no_box_is_too_large():
    # At most half of the area in proportions of at most 4/3 always fits into a square.
    drawn = boxes(RandomResizedCrop(224, scale=(0.1, 0.5)), 1000, 1000)
    areas = np.sort([box.height * box.width / 1e6 for box in drawn])
    even = np.linspace(0.1, 0.5, len(areas))
    # Kolmogorov's distance, of which more than 0.036 has a probability of 0.001 at 3,000 draws.
    assert np.abs(areas - even).max() / 0.4 < 0.036
    ratios = np.sort([math.log(box.width / box.height) for box in drawn])
    ends = math.log(3 / 4), math.log(4 / 3)
    assert np.abs(ratios - np.linspace(*ends, len(ratios))).max() / (ends[1] - ends[0]) < 0.036
    places = np.sort([box.top / (1000 - box.height) for box in drawn])
    assert np.abs(places - np.linspace(0, 1, len(places))).max() < 0.036


@pytest.mark.parametrize(
    ("height", "width", "box"),
    [
        # A strip has room for no proportion of 3/4 to 4/3 with 90 % of its area.
        (100, 1000, Box(0, 433, 100, 133)),
        (1000, 100, Box(433, 0, 133, 100)),
        (100, 100, Box(0, 0, 100, 100)),
    ],
)
def test_where_nothing_fits_the_centre_is_taken(height, width, box):
    crop = RandomResizedCrop(224, scale=(2.0, 3.0))
    assert crop.box(height, width, np.random.default_rng(0)) == box


@pytest.mark.slow  # the oracle takes seconds to be imported
def test_boxes_are_distributed_as_those_of_albumentations(monkeypatch):
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")
    albumentations = pytest.importorskip("albumentations")
    from scipy.stats import ks_2samp

    theirs = albumentations.RandomResizedCrop(
        size=(224, 224), scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)
    )
    theirs.set_random_seed(3)
    drawn = np.array(
        [
            theirs.get_params_dependent_on_data({"shape": (256, 256, 3)}, {})["crop_coords"]
            for _ in range(3000)
        ]
    )
    left, top, right, bottom = drawn.T
    ours = np.array(boxes(RandomResizedCrop(224), 256, 256))
    for mine, other in (
        (ours[:, 0], top),
        (ours[:, 1], left),
        (ours[:, 2], bottom - top),
        (ours[:, 3], right - left),
        (ours[:, 2] * ours[:, 3], (bottom - top) * (right - left)),
    ):
        assert ks_2samp(mine, other).pvalue > 1e-3
