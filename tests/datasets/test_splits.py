"""Splits: disjoint, complete, stratified, and the same for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shiftcal.datasets import calibration_split, source_split, target_split
from shiftcal.errors import InputError

LABELS = arrays(np.int64, st.integers(2, 200), elements=st.integers(0, 6))
SEEDS = st.integers(0, 2**64 - 1)
MASK = 2**64 - 1


def philox(key, n):
    """Philox4x64-10 in plain integers, from its definition; numpy counts from 1."""
    words = []
    for block in range(1, -(-n // 4) + 1):
        x, (k0, k1) = [block, 0, 0, 0], key
        for _ in range(10):
            a, b = 0xD2E7470EE14C6C93 * x[0], 0xCA5A826395121157 * x[2]
            x = [(b >> 64) ^ x[1] ^ k0, b & MASK, (a >> 64) ^ x[3] ^ k1, a & MASK]
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
        words += x
    return words[:n]


def test_the_parts_follow_from_the_published_generator():
    first, _ = target_split(10, first=0.3, seed=4)
    assert first.tolist() == sorted(np.argsort(philox((4, 3), 10))[:3].tolist())


def check_cut(first, second, n):
    assert first.size
    assert second.size
    assert (np.diff(first) > 0).all()
    assert (np.diff(second) > 0).all()
    np.testing.assert_array_equal(np.sort(np.concatenate([first, second])), np.arange(n))


@given(labels=LABELS, share=st.floats(0.01, 0.99), seed=SEEDS)
def test_calibration_has_exactly_n_and_of_every_class_its_share(labels, share, seed):
    n = min(max(int(share * len(labels)), 1), len(labels) - 1)
    first, second = calibration_split(labels, n=n, seed=seed)
    check_cut(first, second, len(labels))
    assert len(first) == n
    for label in np.unique(labels):
        exact = n * (labels == label).sum() / len(labels)
        assert abs((labels[first] == label).sum() - exact) < 1


@given(labels=LABELS, seed=SEEDS)
def test_only_the_labels_and_the_seed_decide(labels, seed):
    once, again = (calibration_split(labels.copy(), n=1, seed=seed)[0] for _ in range(2))
    np.testing.assert_array_equal(once, again)
    # Other names for the classes in the same order are the same classes.
    names = np.array([f"class {label}" for label in labels])
    np.testing.assert_array_equal(calibration_split(names, n=1, seed=seed)[0], once)


@given(n=st.integers(2, 300), share=st.floats(0.2, 0.8), seed=SEEDS)
def test_sources_and_targets_are_cut_by_their_fraction(n, share, seed):
    rounded = int(np.floor(share * n + 0.5))
    if not 0 < rounded < n:
        return
    for first, second in (
        source_split(n, train=share, seed=seed),
        target_split(n, first=share, seed=seed),
    ):
        check_cut(first, second, n)
        assert len(first) == rounded


@given(labels=LABELS, seed=SEEDS)
def test_a_source_with_labels_is_stratified(labels, seed):
    if not 0 < int(np.floor(0.8 * len(labels) + 0.5)) < len(labels):
        return
    first, second = source_split(labels, seed=seed)
    check_cut(first, second, len(labels))
    exact = len(first) * np.bincount(labels) / len(labels)
    assert (np.abs(np.bincount(labels[first], minlength=len(exact)) - exact) < 1).all()


def test_remainders_go_to_the_largest_and_then_to_the_lower_class():
    labels = np.repeat([0, 1, 2, 3], [5, 5, 5, 7])
    first, _ = calibration_split(labels, n=6)
    # Shares are 1.36 three times and 1.91: the fourth class is rounded up, then the first.
    assert np.bincount(labels[first]).tolist() == [2, 1, 1, 2]


GOLDEN = {
    "calibration": [3, 5, 12, 13, 14, 15, 16, 17, 21, 22],
    "source": [0, 4, 8, 12],
    "target": [4, 5, 6, 7, 13, 14, 15, 16, 17, 18],
}


def test_seed_0_gives_the_same_images_for_ever():
    labels = np.arange(30) % 3
    assert calibration_split(labels, n=10)[0].tolist() == GOLDEN["calibration"]
    assert source_split(20)[1].tolist() == GOLDEN["source"]
    assert target_split(20)[0].tolist() == GOLDEN["target"]


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: calibration_split([0, 1] * 5), "10 images must leave some for both.*5,000 were"),
        (lambda: calibration_split([0, 1] * 5, n=10), "must leave some for both parts; 10 were"),
        (lambda: calibration_split([0, 1], n=0), "n must be a whole number of at least 1; got 0"),
        (lambda: calibration_split([0.5, 1.0], n=1), "class indices or names.*dtype float64"),
        (lambda: calibration_split(np.eye(3, dtype=int), n=1), r"got shape \(3, 3\)"),
        (lambda: calibration_split([0, 1], n=1, seed=-1), "seed must be a whole number"),
        (lambda: calibration_split([0, 1], n=1, seed=2**64), "seed must be a whole number"),
        (lambda: calibration_split([0, 1], n=1, seed=1.5), "seed must be a whole number"),
        (lambda: source_split(1), "n must be a whole number of at least 2; got 1"),
        (lambda: source_split(10, train=1.0), "train must lie strictly between 0 and 1; got 1.0"),
        (lambda: source_split(2, train=0.9), "2 images must leave some for both parts"),
        (lambda: target_split(10, first=0), "first must lie strictly between 0 and 1; got 0"),
        (lambda: target_split([0, 1]), "n must be a whole number of at least 2"),
    ],
)
def test_splits_that_cannot_be_are_refused(act, words):
    with pytest.raises(InputError, match=words):
        act()
