"""Shot noise: the tables against scipy's Poisson distribution, the images against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo
from random_fields import TABLES, largest_correlation, random_words
from scipy import stats

from shiftcal import corruptions
from shiftcal.corruptions._kernels.poisson_table import alias_table, level_masses

NAME = "shot_noise"
RATES = (500.0, 250.0, 100.0, 75.0, 60.0, 50.0, 30.0, 25.0, 15.0, 12.0, 5.0, 3.0)


def published(counts, rate):
    return np.uint8(np.clip(counts / rate, 0, 1) * 255)


@pytest.mark.parametrize("rate", RATES)
def test_levels_have_the_probabilities_of_the_counts_that_lead_to_them(rate):
    masses = level_masses(rate)
    counts = np.arange(1200)
    for level in (0, 1, 2, 17, 100, 128, 200, 254, 255):
        chances = stats.poisson.pmf(counts, level / 255 * rate)
        expected = np.bincount(published(counts, rate), weights=chances, minlength=256)
        # Two roundings of half a unit, and those of scipy.
        np.testing.assert_allclose(masses[level] / 2**32, expected, atol=1.1 * 2.0**-32)
    assert (masses.sum(axis=1) == 2**32).all()
    assert (masses >= 0).all()


@pytest.mark.parametrize("rate", RATES)
def test_the_alias_table_keeps_every_mass_exactly(rate):
    masses = level_masses(rate)
    entries = alias_table(masses).reshape(256, 256).astype(np.int64)
    own, other = entries >> 8, entries & 255
    kept = own.copy()
    for level in range(256):
        np.add.at(kept[level], other[level], 2**24 - own[level])
    np.testing.assert_array_equal(kept, masses)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_every_value_is_read_from_the_table_with_its_own_number(table, severity):
    (rate,) = corruptions.get(NAME)().setting(severity, table=table)
    entries = alias_table(level_masses(rate)).reshape(256, 256)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, NAME, severity, table, seed=7)
    for index, image in enumerate(images):
        words = random_words(image.size, NAME, severity, index=index, seed=7).reshape(image.shape)
        entry = entries[image, words >> 24]
        expected = np.where(words % 2**24 < entry >> 8, words >> 24, entry & 255)
        np.testing.assert_array_equal(found[index], expected)


@pytest.mark.parametrize("severity", [1, 3, 5])
@pytest.mark.parametrize("table", ["cifar", "imagenet"])
@pytest.mark.parametrize("level", [1, 40, 128, 255])
def test_it_is_distributed_as_numpys_own_counts(table, severity, level):
    (rate,) = corruptions.get(NAME)().setting(severity, table=table)
    images = np.full((4, 160, 160, 3), level, np.uint8)
    found = corrupted(images, NAME, severity, table, seed=2)
    theirs = published(np.random.default_rng(4).poisson(level / 255 * rate, images.shape), rate)
    both = np.stack([np.bincount(x.ravel(), minlength=256) for x in (found, theirs)])
    assert stats.chi2_contingency(both[:, both.sum(axis=0) > 9]).pvalue > 1e-5


def test_mean_and_variance_of_a_photograph_are_those_of_the_counts():
    images = np.repeat(photo(40, 52)[None], 400, axis=0)
    found = corrupted(images, NAME, 3, "cifar").astype(np.float64)
    dim = images[0] < 128  # where clipping is 7 deviations away
    x = images[0][dim] / 255
    mean, variance = found.mean(axis=0)[dim], found.var(axis=0)[dim]
    # Levels come in steps of 2.55, and are cut: on average 0.4 to 0.5 below 255 k / c.
    assert (mean - 255 * x).mean() == pytest.approx(-0.45, abs=0.1)
    assert (variance / (255**2 * x / 100)).mean() == pytest.approx(1, abs=0.02)


def test_black_stays_black_and_half_of_white_falls():
    found = corrupted(odd_images(224, 224)[:2], NAME, 1, "cifar")
    assert not found[0].any()
    # The counts that are not clipped are those below 500; their share is 0.494.
    share = stats.poisson.cdf(499, 500)
    assert (found[1] < 255).mean() == pytest.approx(share, abs=5 * 0.5 / np.sqrt(found[1].size))


def test_few_photons_leave_few_levels():
    found = corrupted(photo(200, 150)[None], NAME, 5, "imagenet")
    assert set(np.unique(found)) == {0, 85, 170, 255}


def test_values_next_to_one_another_and_images_have_nothing_in_common():
    images = np.full((12, 224, 224, 3), 128, np.uint8)
    noise = corrupted(images, NAME, 2, "cifar").astype(np.float64)
    assert largest_correlation(noise - noise.mean()) < 5
