"""Which images an iteration trains on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.adaptation.feeds.sampling import SOURCE, TARGET, indices
from shiftcal.datasets import target_split


def one_pass(n, number, *, batch_size, key=(0, SOURCE), **where):
    steps = n // (where.get("world", 1) * batch_size)
    return [
        indices(n, number * steps + i, batch_size=batch_size, key=key, **where)
        for i in range(steps)
    ]


def test_the_order_is_that_of_the_philox_words():
    words = np.random.Philox(
        key=np.array([7, TARGET], np.uint64), counter=np.array([0, 3, 0, 1], np.uint64)
    ).random_raw(10)
    third = np.concatenate(one_pass(10, 3, batch_size=5, key=(7, TARGET)))
    np.testing.assert_array_equal(third, np.argsort(words))


def test_the_order_is_the_same_on_every_machine():
    first = indices(10, 0, batch_size=10, key=(0, SOURCE))
    largest = indices(10, 0, batch_size=10, key=(2**64 - 1, TARGET))
    assert first.tolist() == [8, 7, 4, 2, 6, 5, 9, 0, 1, 3]
    assert largest.tolist() == [8, 5, 4, 7, 3, 1, 6, 0, 2, 9]


def test_a_pass_has_every_image_once_but_for_what_is_left_over():
    batches = one_pass(23, 0, batch_size=5)
    assert len(batches) == 4
    assert len(set(np.concatenate(batches).tolist())) == 20


def test_passes_leave_out_other_images():
    out = [set(range(23)) - set(np.concatenate(one_pass(23, k, batch_size=5))) for k in range(20)]
    assert len(set.union(*out)) == 23


@pytest.mark.parametrize(
    "other",
    [{"key": (1, SOURCE)}, {"key": (0, TARGET)}, {"step": 4}],
    ids=["seed", "domain", "pass"],
)
def test_seeds_domains_and_passes_have_orders_of_their_own(other):
    one = indices(100, 0, batch_size=25, key=(0, SOURCE))
    two = indices(100, **{"step": 0, "batch_size": 25, "key": (0, SOURCE), **other})
    # Of 25 images drawn from 100 a quarter is expected in common.
    assert not np.array_equal(one, two)
    assert len(set(one) & set(two)) < 15


def test_the_order_has_nothing_to_do_with_the_split_of_the_same_seed():
    first, _ = target_split(1000, seed=3)
    for domain in range(5):
        begins = indices(1000, 0, batch_size=500, key=(3, domain))
        # 250 are expected, with a standard deviation of 8.
        assert abs(len(set(begins) & set(first)) - 250) < 50


def test_every_image_comes_to_every_place():
    drawn = np.array([indices(6, k, batch_size=6, key=(1, SOURCE)) for k in range(1200)])
    for place in range(6):
        counts = np.bincount(drawn[:, place], minlength=6)
        # 200 are expected, with a standard deviation of 13.
        assert np.abs(counts - 200).max() < 60


@pytest.mark.parametrize("n", [50, 12, 5])
def test_processes_share_the_batch_of_one(n):
    for step in range(9):
        whole = indices(n, step, batch_size=12, key=(4, TARGET))
        parts = [
            indices(n, step, batch_size=4, key=(4, TARGET), rank=rank, world=3) for rank in range(3)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_too_few_images_for_a_batch_come_as_often_as_one_another():
    drawn = np.concatenate([indices(5, k, batch_size=8, key=(0, SOURCE)) for k in range(10)])
    for first in range(0, 80, 5):
        assert sorted(drawn[first : first + 5]) == list(range(5))


@given(
    n=st.integers(1, 40),
    step=st.integers(0, 200),
    batch_size=st.integers(1, 12),
    world=st.integers(1, 3),
)
def test_a_batch_is_full_and_does_not_depend_on_what_came_before(n, step, batch_size, world):
    asked = {"batch_size": batch_size, "key": (9, SOURCE), "rank": world - 1, "world": world}
    one = indices(n, step, **asked)
    for k in range(6):
        indices(n + 1 + k, step, **asked)
    two = indices(n, step, **asked)
    assert one.shape == (batch_size,)
    assert one.dtype == np.intp
    assert one.min() >= 0
    assert one.max() < n
    np.testing.assert_array_equal(one, two)


def test_what_was_given_may_be_written_to():
    one = indices(10, 0, batch_size=10, key=(0, SOURCE))
    one[:] = 0
    assert len(set(indices(10, 0, batch_size=10, key=(0, SOURCE)))) == 10
