"""Random numbers of an image: a function of four numbers, and independent between images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from shiftcal.adaptation.feeds.augment.draws import generator
from shiftcal.adaptation.feeds.sampling import indices


def test_the_same_four_numbers_give_the_same_draws():
    told = {"step": 7, "domain": 1, "position": 3}
    first, second = (generator(5, **told).random(8) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_another_seed_batch_domain_or_position_gives_others():
    told = itertools.product((0, 1, 2**64 - 1), (0, 1, 10**6), (0, 1), (0, 1, 500))
    drawn = [
        generator(seed, step=step, domain=domain, position=place).integers(2**63)
        for seed, step, domain, place in told
    ]
    assert len(set(drawn)) == len(drawn) == 54


def test_many_draws_of_one_image_do_not_run_into_those_of_the_next():
    here = generator(0, step=4, domain=0, position=9).integers(2**63, size=5000)
    others = [generator(0, step=4, domain=0, position=9 + more) for more in range(1, 4)]
    assert not set(here) & {int(rng.integers(2**63)) for rng in others}


def test_draws_are_not_those_that_order_the_images():
    order = indices(64, 0, batch_size=64, key=(3, 0))
    words = generator(3, step=0, domain=0, position=0).bit_generator.random_raw(64)
    assert not np.array_equal(np.argsort(words, kind="stable"), order)


@pytest.mark.parametrize("domain", [0, 1])
def test_first_draws_of_all_positions_are_uniform(domain):
    drawn = np.sort(
        [
            generator(0, step=step, domain=domain, position=place).random()
            for step in range(40)
            for place in range(50)
        ]
    )
    # Kolmogorov's distance, of which more than 0.044 has a probability of 0.001 at 2,000 draws.
    assert np.abs(drawn - np.linspace(0, 1, 2000)).max() < 0.044
