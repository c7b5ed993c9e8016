"""Bins against their definition, netcal, and every order of the rows."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from netcal.metrics import ECE

from shiftcal.numerics import binning
from shiftcal.numerics.binning import equal_size_bins, equal_width_bins, sums_between

# So many that cells are as narrow as they get.
KERNEL = 300_000
# Sums of many doubles in another order, and confidences kept as multiples of 2**-46.
ROUNDING = 1e-12

DRAWS = {
    "usual": lambda rng, n: rng.beta(6, 1.2, n),
    "uniform": lambda rng, n: rng.random(n),
    "saturated": lambda rng, n: np.where(rng.random(n) < 0.6, 1.0, 1 - rng.random(n) ** 12),
    "tiny": lambda rng, n: rng.random(n) ** 40,
    "on the edges": lambda rng, n: rng.integers(0, 16, n) / 15,
    "in three groups": lambda rng, n: rng.choice([0.2, 0.5, 0.9], n),
    "all equal": lambda _, n: np.full(n, 0.3),
}


def draw(kind, n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    confidence = DRAWS[kind](rng, n).astype(dtype)
    return confidence, rng.random(n) < 0.2 + 0.6 * confidence


def size_by_definition(confidence, correct, n_bins):
    """Sort, replace correctness by the mean of its group of equals, cut with array_split."""
    values, group = np.unique(confidence.astype(np.float64), return_inverse=True)
    mean = np.bincount(group, weights=correct) / np.bincount(group)
    group = np.sort(group)
    pieces = np.array_split(np.arange(len(group)), min(n_bins, len(group)))
    c, r = values[group], mean[group]
    return [
        np.array([len(p) for p in pieces]),
        np.array([c[p].sum() for p in pieces]),
        np.array([r[p].sum() for p in pieces]),
        np.array([c[p[0]] for p in pieces]),
        np.array([c[p[-1]] for p in pieces]),
    ]


def width_by_definition(confidence, correct, n_bins):
    c, edges = confidence.astype(np.float64), np.linspace(0, 1, n_bins + 1)
    inside = [(c > low) & (c <= high) for low, high in pairwise(edges)]
    inside[0] |= c == 0
    return [
        np.array([i.sum() for i in inside]),
        np.array([c[i].sum() for i in inside]),
        np.array([correct[i].sum() for i in inside]),
        edges[:-1],
        edges[1:],
    ]


BINNINGS = {
    "size": (equal_size_bins, size_by_definition),
    "width": (equal_width_bins, width_by_definition),
}


@pytest.mark.parametrize("kind_of_bins", BINNINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("n", [1, 16, KERNEL])
def test_it_is_its_definition(kind_of_bins, n, kind, dtype):
    ours, definition = BINNINGS[kind_of_bins]
    confidence, correct = draw(kind, n, dtype)
    for n_bins in (1, 15, 300):
        found = ours(confidence, correct, n_bins)
        wanted = definition(confidence, correct, n_bins)
        assert np.array_equal(found.counts, wanted[0])
        assert np.allclose(found.confidence, wanted[1], rtol=ROUNDING, atol=n * 2.0**-47)
        assert np.allclose(found.correct, wanted[2], rtol=ROUNDING, atol=0)
        assert np.array_equal(found.lower, wanted[3])
        assert np.array_equal(found.upper, wanted[4])


@pytest.mark.parametrize("kind_of_bins", BINNINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("n", [23, KERNEL])
def test_the_order_of_rows_changes_no_bit(kind_of_bins, n, kind, dtype):
    ours, _ = BINNINGS[kind_of_bins]
    confidence, correct = draw(kind, n, dtype)
    order = np.random.default_rng(1).permutation(n)
    once = ours(confidence, correct, 15)
    again = ours(confidence[order], correct[order], 15)
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))


@pytest.mark.parametrize("n_bins", [1, 10, 15])
@pytest.mark.parametrize("n", [1500, KERNEL // 30 * 30])
@pytest.mark.parametrize("kind_of_bins", BINNINGS)
def test_the_calibration_error_is_netcals(kind_of_bins, n, n_bins):
    # netcal closes bins on the left and cuts at interpolated quantiles: the same where no
    # confidence lies on an edge, none occurs twice, and n_bins divides n.
    confidence, correct = draw("usual", n, np.float64)
    found = BINNINGS[kind_of_bins][0](confidence, correct, n_bins)
    ours = np.abs(found.confidence - found.correct).sum() / n
    theirs = ECE(n_bins, equal_intervals=kind_of_bins == "width", detection=True)
    assert ours == pytest.approx(theirs.measure(confidence, correct.astype(int)), abs=ROUNDING)


@pytest.mark.parametrize("n_bins", [15, 49, 107, 250])
def test_every_edge_and_its_neighbours_fall_on_the_right_side(n_bins):
    # 49 * (1 / 49) is less than one, and others round up: the edges decide, not the products.
    edges = np.linspace(0, 1, n_bins + 1)
    around = [edges, np.nextafter(edges[1:], 0), np.nextafter(edges[:-1], 1)]
    confidence = np.resize(np.concatenate(around), KERNEL)
    correct = np.ones(KERNEL, dtype=bool)
    found = equal_width_bins(confidence, correct, n_bins)
    assert np.array_equal(found.counts, width_by_definition(confidence, correct, n_bins)[0])
    assert np.array_equal(found.lower, edges[:-1])


@pytest.mark.parametrize("kind_of_bins", BINNINGS)
def test_parts_and_threads_change_no_bit(monkeypatch, kind_of_bins):
    ours, _ = BINNINGS[kind_of_bins]
    confidence, correct = draw("saturated", KERNEL, np.float32)
    once = ours(confidence, correct, 15)
    monkeypatch.setattr(binning, "_PART", 1 << 10)
    for processors in (1, 3):
        monkeypatch.setattr(
            os, "sched_getaffinity", lambda _, p=processors: range(p), raising=False
        )
        again = ours(confidence, correct, 15)
        assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))


grades = st.sampled_from([0.0, 1e-9, 0.2, 1 / 3, 0.5, 0.75, 0.999, 1.0])
samples = st.lists(st.tuples(st.one_of(grades, st.floats(0, 1)), st.booleans()), min_size=1)


@given(samples, st.integers(1, 40), st.sampled_from(sorted(BINNINGS)))
def test_every_sample_is_in_exactly_one_bin(rows, n_bins, kind):
    confidence, correct = (np.array(column) for column in zip(*rows, strict=True))
    found = BINNINGS[kind][0](confidence, correct, n_bins)
    wanted = BINNINGS[kind][1](confidence, correct, n_bins)
    n = len(rows)
    assert found.counts.sum() == n
    assert found.confidence.sum() == pytest.approx(confidence.sum(), abs=n * 1e-14)
    assert found.correct.sum() == pytest.approx(correct.sum(), rel=ROUNDING)
    for ours, theirs in zip(found, wanted, strict=True):
        assert np.allclose(ours, theirs, rtol=ROUNDING, atol=n * 1e-14)
    filled = found.counts > 0
    mean = found.confidence[filled] / found.counts[filled]
    assert np.all(mean >= found.lower[filled] - 1e-12)
    assert np.all(mean <= found.upper[filled] + 1e-12)
    if kind == "size":
        assert len(found.counts) == min(n, n_bins)
        assert np.ptp(found.counts) <= 1
        assert np.all(np.diff(found.counts) <= 0)


def test_a_group_across_a_cut_is_spread_evenly():
    sums = sums_between(np.array([1, 4]), np.array([10.0, 8.0]), np.array([0, 3, 5]))
    assert sums.tolist() == [14.0, 4.0]
