"""Gaussian, shot, impulse and speckle noise against numpy, scipy and scikit-image."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo
from random_fields import TABLES, largest_correlation, normal_deviates, random_words
from scipy import stats
from skimage.util import random_noise

from shiftcal import corruptions
from shiftcal.corruptions.noise import alias_table, level_masses

# ---- gaussian noise


def published_of_gaussian_noise(image, scale, deviates):
    noisy = image / 255.0 + scale * deviates.reshape(image.shape)
    return np.uint8(np.clip(noisy, 0, 1) * 255)


def flat(n, level, size=224):
    return np.full((n, size, size, 3), level, np.uint8)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_gaussian_noise_it_is_the_published_recipe_with_these_random_numbers(table, severity):
    (scale,) = corruptions.get("gaussian_noise")().setting(severity, table=table)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, "gaussian_noise", severity, table, seed=7)
    for index, image in enumerate(images):
        deviates = normal_deviates(image.size, "gaussian_noise", severity, index=index, seed=7)
        np.testing.assert_array_equal(
            found[index], published_of_gaussian_noise(image, scale, deviates)
        )


@pytest.mark.parametrize(("table", "severity"), [("cifar", 1), ("cifar", 5), ("imagenet", 5)])
@pytest.mark.parametrize("level", [0, 128, 250])
def test_levels_are_as_frequent_as_the_normal_distribution_has_it(table, severity, level):
    (scale,) = corruptions.get("gaussian_noise")().setting(severity, table=table)
    found = corrupted(flat(6, level), "gaussian_noise", severity, table, seed=3)
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


def test_the_tails_are_those_of_the_normal_distribution_as_far_as_five_deviations():
    found = corrupted(flat(200, 128, 160), "gaussian_noise", 1, "cifar", seed=1).astype(np.int16)
    for levels in (34, 40, 44, 46, 48, 50):
        # Downwards a step of k levels is noise below -(k - 1) levels.
        for count, least in (((found - 128 >= levels).sum(), levels),
                             ((128 - found >= levels).sum(), levels - 1)):  # fmt: skip
            expected = stats.norm.sf(least / (255 * 0.04)) * found.size
            low, high = stats.poisson.ppf([1e-5, 1 - 1e-5], expected)
            assert low <= count <= high, (levels, expected)
    # 4.32 deviations are the most that 16 bits could give.
    assert np.abs(found - 128).max() > 4.4 * 255 * 0.04


# ---- shot noise


RATES = (500.0, 75.0, 12.0, 3.0)


def published_of_shot_noise(counts, rate):
    return np.uint8(np.clip(counts / rate, 0, 1) * 255)


@pytest.mark.parametrize("rate", RATES)
def test_levels_have_the_probabilities_of_the_counts_that_lead_to_them(rate):
    masses = level_masses(rate)
    counts = np.arange(1200)
    for level in (0, 1, 2, 17, 100, 128, 200, 254, 255):
        chances = stats.poisson.pmf(counts, level / 255 * rate)
        expected = np.bincount(
            published_of_shot_noise(counts, rate), weights=chances, minlength=256
        )
        # Two roundings of half a unit, and those of scipy.
        np.testing.assert_allclose(masses[level] / 2**32, expected, atol=1.1 * 2.0**-32)
    assert (masses.sum(axis=1) == 2**32).all()
    assert (masses >= 0).all()


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_every_value_is_read_from_the_table_with_its_own_number(table, severity):
    (rate,) = corruptions.get("shot_noise")().setting(severity, table=table)
    entries = alias_table(level_masses(rate)).reshape(256, 256)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, "shot_noise", severity, table, seed=7)
    for index, image in enumerate(images):
        words = random_words(image.size, "shot_noise", severity, index=index, seed=7).reshape(
            image.shape
        )
        entry = entries[image, words >> 24]
        expected = np.where(words % 2**24 < entry >> 8, words >> 24, entry & 255)
        np.testing.assert_array_equal(found[index], expected)


@pytest.mark.parametrize(("table", "severity"), [("cifar", 1), ("imagenet", 5)])
@pytest.mark.parametrize("level", [1, 128, 255])
def test_it_is_distributed_as_numpys_own_counts(table, severity, level):
    (rate,) = corruptions.get("shot_noise")().setting(severity, table=table)
    images = np.full((4, 160, 160, 3), level, np.uint8)
    found = corrupted(images, "shot_noise", severity, table, seed=2)
    theirs = published_of_shot_noise(
        np.random.default_rng(4).poisson(level / 255 * rate, images.shape), rate
    )
    both = np.stack([np.bincount(x.ravel(), minlength=256) for x in (found, theirs)])
    assert stats.chi2_contingency(both[:, both.sum(axis=0) > 9]).pvalue > 1e-5


# ---- impulse noise


class Given(np.random.Generator):
    """A generator whose two draws are known beforehand."""

    def __init__(self, *draws):
        super().__init__(np.random.PCG64(0))
        self.draws = list(draws)

    def random(self, size):
        return self.draws.pop(0).reshape(size)


def published_of_impulse_noise(image, amount, generator):
    noisy = random_noise(image / 255.0, mode="s&p", amount=amount, rng=generator)
    return np.uint8(np.clip(noisy, 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_what_scikit_image_makes_of_these_random_numbers(table, severity):
    (amount,) = corruptions.get("impulse_noise")().setting(severity, table=table)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, "impulse_noise", severity, table, seed=7)
    for index, image in enumerate(images):
        words = random_words(image.size, "impulse_noise", severity, index=index, seed=7)
        draws = Given((words + 0.5) / 2**32, np.where(words & 1, 0.25, 0.75))
        np.testing.assert_array_equal(
            found[index], published_of_impulse_noise(image, amount, draws)
        )


# ---- speckle noise


def published_of_speckle_noise(image, scale, deviates):
    x = image / 255.0
    return np.uint8(np.clip(x + x * (scale * deviates.reshape(image.shape)), 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_speckle_noise_it_is_the_published_recipe_with_these_random_numbers(table, severity):
    (scale,) = corruptions.get("speckle_noise")().setting(severity, table=table)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, "speckle_noise", severity, table, seed=7)
    expected = np.stack(
        [
            published_of_speckle_noise(
                image,
                scale,
                normal_deviates(image.size, "speckle_noise", severity, index=i, seed=7),
            )
            for i, image in enumerate(images)
        ]
    )
    differences = found.astype(np.int64) - expected
    # Deviates are right to 1.4e-5, which is 0.002 levels at the most.
    assert np.abs(differences).max() <= 1
    assert (differences == 0).mean() > 0.999


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"])
def test_values_next_to_one_another_and_images_have_nothing_in_common(name):
    noise = corrupted(flat(12, 128), name, 2, "cifar").astype(np.float64)
    assert largest_correlation(noise - noise.mean()) < 5
