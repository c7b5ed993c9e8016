"""Gaussian noise against the published recipe, given its random numbers and in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo
from random_fields import TABLES, largest_correlation, normal_deviates
from scipy import stats

from shiftcal import corruptions

NAME = "gaussian_noise"


def published(image, scale, deviates):
    noisy = image / 255.0 + scale * deviates.reshape(image.shape)
    return np.uint8(np.clip(noisy, 0, 1) * 255)


def flat(n, level, size=224):
    return np.full((n, size, size, 3), level, np.uint8)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_the_published_recipe_with_these_random_numbers(table, severity):
    (scale,) = corruptions.get(NAME)().setting(severity, table=table)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, NAME, severity, table, seed=7)
    for index, image in enumerate(images):
        deviates = normal_deviates(image.size, NAME, severity, index=index, seed=7)
        np.testing.assert_array_equal(found[index], published(image, scale, deviates))


@pytest.mark.parametrize("shape", [(8, 8), (9, 11), (8, 333), (37, 29)])
def test_the_number_of_values_may_be_odd_or_no_multiple_of_a_block(shape):
    image = photo(*shape)
    found = corrupted(image[None], NAME, 3, "cifar")[0]
    deviates = normal_deviates(image.size, NAME, 3)
    np.testing.assert_array_equal(found, published(image, 0.08, deviates))


@pytest.mark.parametrize(("table", "severity"), [("cifar", 1), ("cifar", 5), ("imagenet", 5)])
@pytest.mark.parametrize("level", [0, 128, 250])
def test_levels_are_as_frequent_as_the_normal_distribution_has_it(table, severity, level):
    (scale,) = corruptions.get(NAME)().setting(severity, table=table)
    found = corrupted(flat(6, level), NAME, severity, table, seed=3)
    edges = (np.arange(257) - level) / 255 / scale
    edges[0], edges[255], edges[256] = -np.inf, (255 - level) / 255 / scale, np.inf
    shares = np.diff(stats.norm.cdf(edges))
    counts = np.bincount(found.ravel(), minlength=256)
    likely = shares * found.size > 5
    rest = (shares[~likely].sum(), counts[~likely].sum())
    expected = np.append(shares[likely], rest[0]) * found.size
    observed = np.append(counts[likely], rest[1])
    keep = expected > 0
    assert observed[~keep].sum() == 0
    assert stats.chisquare(observed[keep], expected[keep]).pvalue > 1e-5


def test_it_is_distributed_as_numpys_own_noise():
    rng = np.random.default_rng(11)
    image = photo(40, 52)
    images = np.repeat(image[None], 200, axis=0)
    found = corrupted(images, NAME, 4, "imagenet", seed=5)
    theirs = published(images, 0.26, rng.standard_normal(images.size))
    for summary in (np.mean, np.std):
        ours_at, theirs_at = summary(found, axis=0), summary(theirs, axis=0)
        # At each of 6,240 values, the mean over 200 draws has a deviation of at most 66 / 14 = 4.7.
        assert np.abs(ours_at - theirs_at).max() < 30
        assert abs(ours_at.mean() - theirs_at.mean()) < 0.3
    both = np.stack([np.bincount(x.ravel(), minlength=256) for x in (found, theirs)])
    assert stats.chi2_contingency(both).pvalue > 1e-5


def test_the_tails_are_those_of_the_normal_distribution_as_far_as_five_deviations():
    found = corrupted(flat(200, 128, 160), NAME, 1, "cifar", seed=1).astype(np.int16)
    for levels in (34, 40, 44, 46, 48, 50):
        # Downwards a step of k levels is noise below -(k - 1) levels.
        for count, least in (((found - 128 >= levels).sum(), levels),
                             ((128 - found >= levels).sum(), levels - 1)):  # fmt: skip
            expected = stats.norm.sf(least / (255 * 0.04)) * found.size
            low, high = stats.poisson.ppf([1e-5, 1 - 1e-5], expected)
            assert low <= count <= high, (levels, expected)
    # 4.32 deviations are the most that 16 bits could give.
    assert np.abs(found - 128).max() > 4.4 * 255 * 0.04


def test_values_are_cut_not_rounded_so_that_the_mean_falls_by_half_a_level():
    noise = corrupted(flat(6, 128), NAME, 1, "cifar").astype(np.float64) - 128
    deviation = 255 * 0.04
    assert noise.mean() == pytest.approx(-0.5, abs=5 * deviation / np.sqrt(noise.size))
    assert noise.var() == pytest.approx(deviation**2 + 1 / 12, rel=5 * np.sqrt(2 / noise.size))


def test_values_next_to_one_another_and_images_have_nothing_in_common():
    noise = corrupted(flat(12, 128), NAME, 2, "cifar").astype(np.float64)
    assert largest_correlation(noise - noise.mean()) < 5
