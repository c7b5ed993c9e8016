"""Speckle noise against the published recipe, given its random numbers and in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo
from random_fields import TABLES, largest_correlation, normal_deviates
from scipy import stats

from shiftcal import corruptions

NAME = "speckle_noise"


def published(image, scale, deviates):
    x = image / 255.0
    return np.uint8(np.clip(x + x * (scale * deviates.reshape(image.shape)), 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_the_published_recipe_with_these_random_numbers(table, severity):
    (scale,) = corruptions.get(NAME)().setting(severity, table=table)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, NAME, severity, table, seed=7)
    expected = np.stack(
        [
            published(image, scale, normal_deviates(image.size, NAME, severity, index=i, seed=7))
            for i, image in enumerate(images)
        ]
    )
    differences = found.astype(np.int64) - expected
    # Deviates are right to 1.4e-5, which is 0.002 levels at the most.
    assert np.abs(differences).max() <= 1
    assert (differences == 0).mean() > 0.999


@pytest.mark.parametrize("shape", [(8, 8), (9, 11), (8, 333)])
def test_the_number_of_values_may_be_odd_or_no_multiple_of_a_block(shape):
    image = photo(*shape)
    found = corrupted(image[None], NAME, 3, "cifar")[0].astype(np.int64)
    expected = published(image, 0.12, normal_deviates(image.size, NAME, 3))
    assert np.abs(found - expected).max() <= 1
    assert (found == expected).mean() > 0.995


@pytest.mark.parametrize(("table", "severity"), [("cifar", 1), ("cifar", 5), ("imagenet", 5)])
@pytest.mark.parametrize("level", [3, 100, 220])
def test_it_is_distributed_as_numpys_own_noise(table, severity, level):
    (scale,) = corruptions.get(NAME)().setting(severity, table=table)
    images = np.full((6, 224, 224, 3), level, np.uint8)
    found = corrupted(images, NAME, severity, table, seed=2)
    deviates = np.random.default_rng(4).standard_normal(images.size)
    theirs = published(images, scale, deviates)
    both = np.stack([np.bincount(x.ravel(), minlength=256) for x in (found, theirs)])
    assert stats.chi2_contingency(both[:, both.sum(axis=0) > 9]).pvalue > 1e-5


def test_the_noise_grows_with_the_value_and_black_stays_black():
    images = np.repeat(np.arange(0, 121, 40, dtype=np.uint8), 224 * 224 * 3)
    found = corrupted(images.reshape(4, 224, 224, 3), NAME, 3, "cifar").astype(np.float64)
    assert not found[0].any()
    for row, level in zip(found[1:], (40, 80, 120), strict=True):
        deviation = level * 0.12
        assert row.mean() == pytest.approx(level - 0.5, abs=5 * deviation / np.sqrt(row.size))
        assert row.var() == pytest.approx(deviation**2 + 1 / 12, rel=5 * np.sqrt(2 / row.size))


def test_the_tails_reach_beyond_what_16_bits_could_give():
    found = corrupted(np.full((200, 160, 160, 3), 128, np.uint8), NAME, 2, "cifar", seed=1)
    for least in (43, 51, 56, 60):
        count = (found >= 128 + least).sum()
        expected = stats.norm.sf(least / 12.8) * found.size
        low, high = stats.poisson.ppf([1e-5, 1 - 1e-5], expected)
        assert low <= count <= high, (least, expected)


def test_values_next_to_one_another_and_images_have_nothing_in_common():
    images = np.full((12, 224, 224, 3), 128, np.uint8)
    noise = corrupted(images, NAME, 2, "cifar").astype(np.float64)
    assert largest_correlation(noise - noise.mean()) < 5
