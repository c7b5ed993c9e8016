"""Metrics that follow the rows in order of confidence: KS error and area under risk-coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from shiftcal.metrics import aurc, ks_error


def draw(n, *, ties=None, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.beta(6, 2, n)
    c = c if ties is None else np.round(c, ties)
    return c, rng.random(n) < c**1.3


def slow_aurc(c, r):
    """One order of the rows: mean risk over all coverages."""
    order = sorted(range(len(c)), key=lambda i: -c[i])
    errors = np.cumsum([not r[i] for i in order])
    return np.mean(errors / np.arange(1, len(c) + 1))


def test_aurc_agrees_with_the_definition_without_ties():
    c, r = draw(500)
    assert aurc(c, r) == pytest.approx(slow_aurc(c, r), abs=1e-12)


def test_aurc_with_ties_is_the_mean_over_all_their_orders():
    c = np.array([0.9, 0.7, 0.7, 0.7, 0.4, 0.4])
    r = np.array([True, False, True, True, False, True])
    orders = [list(order) for order in itertools.permutations(range(6))]
    mean = np.mean([slow_aurc(c[order], r[order]) for order in orders])
    assert aurc(c, r) == pytest.approx(mean, abs=1e-12)


def test_aurc_by_hand():
    # Surest first: right, wrong, right -> risks 0, 1/2, 1/3.
    assert aurc([0.5, 0.9, 0.7], [True, True, False]) == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)


def test_aurc_ignores_increasing_changes_of_confidence():
    c, r = draw(400, ties=2)
    assert aurc(c**3, r) == pytest.approx(aurc(c, r), abs=1e-12)


def test_ks_error_agrees_with_the_definition_without_ties():
    c, r = draw(500)
    order = np.argsort(c)
    path = np.cumsum(c[order] - r[order])
    assert ks_error(c, r) == pytest.approx(np.abs(path).max() / 500, abs=1e-12)


def test_ks_error_looks_only_at_ends_of_ties():
    # In any one order the path wanders inside the tie; between ties it is at 0.1 * 4 / 4.
    c, r = np.full(4, 0.6), np.array([True, False, True, False])
    assert ks_error(c, r) == pytest.approx(0.1)
    for order in itertools.permutations(range(4)):
        assert ks_error(c[list(order)], r[list(order)]) == pytest.approx(0.1)


def test_half_zero_and_minus_zero_tie():
    assert ks_error(np.array([-0.0, 0.0]), [True, False]) == pytest.approx(0.5)
    assert aurc(np.array([-0.0, 0.0]), [True, False]) == pytest.approx(0.5)
