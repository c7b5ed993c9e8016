"""Impulse noise against scikit-image, given its random numbers and in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted import corrupted
from photos import odd_images, photo
from random_fields import TABLES, largest_correlation, random_words
from skimage.util import random_noise

from shiftcal import corruptions

NAME = "impulse_noise"


class Given(np.random.Generator):
    """A generator whose two draws are known beforehand."""

    def __init__(self, *draws):
        super().__init__(np.random.PCG64(0))
        self.draws = list(draws)

    def random(self, size):
        return self.draws.pop(0).reshape(size)


def published(image, amount, generator):
    noisy = random_noise(image / 255.0, mode="s&p", amount=amount, rng=generator)
    return np.uint8(np.clip(noisy, 0, 1) * 255)


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("table", TABLES)
def test_it_is_what_scikit_image_makes_of_these_random_numbers(table, severity):
    (amount,) = corruptions.get(NAME)().setting(severity, table=table)
    images = np.concatenate([photo(41, 53)[None], odd_images(41, 53)])
    found = corrupted(images, NAME, severity, table, seed=7)
    for index, image in enumerate(images):
        words = random_words(image.size, NAME, severity, index=index, seed=7)
        draws = Given((words + 0.5) / 2**32, np.where(words & 1, 0.25, 0.75))
        np.testing.assert_array_equal(found[index], published(image, amount, draws))


@pytest.mark.parametrize(("table", "severity"), [("cifar", 1), ("cifar", 5), ("imagenet", 5)])
def test_as_many_values_become_black_as_white_and_the_published_share_of_both(table, severity):
    (amount,) = corruptions.get(NAME)().setting(severity, table=table)
    found = corrupted(np.full((8, 224, 224, 3), 100, np.uint8), NAME, severity, table)
    allowed = 5 * np.sqrt(amount / 2 / found.size)
    assert set(np.unique(found)) == {0, 100, 255}
    assert (found == 0).mean() == pytest.approx(amount / 2, abs=allowed)
    assert (found == 255).mean() == pytest.approx(amount / 2, abs=allowed)


def test_every_channel_value_is_drawn_on_its_own_so_that_specks_are_coloured():
    found = corrupted(np.full((8, 224, 224, 3), 100, np.uint8), NAME, 5, "imagenet")
    changed = (found != 100).sum(axis=-1)
    pixels = changed.size
    for channels, share in enumerate((0.73**3, 3 * 0.27 * 0.73**2, 3 * 0.27**2 * 0.73, 0.27**3)):
        allowed = 5 * np.sqrt(share * (1 - share) / pixels)
        assert (changed == channels).mean() == pytest.approx(share, abs=allowed)


def test_specks_have_nothing_to_do_with_one_another():
    found = corrupted(np.full((12, 224, 224, 3), 100, np.uint8), NAME, 5, "imagenet")
    changed = (found != 100).astype(np.float64)
    colour = (found == 255).astype(np.float64) - (found == 0)
    assert largest_correlation(changed - changed.mean()) < 5
    assert largest_correlation(colour - colour.mean()) < 5
