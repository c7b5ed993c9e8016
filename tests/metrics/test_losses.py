"""Proper scores and accuracy against scikit-learn."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from shiftcal.errors import InputError
from shiftcal.metrics import accuracy, bootstrap, brier, nll, top1_brier


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(5, 0.3), 2000), rng.integers(0, 5, 2000)


def test_nll_is_log_loss(rows):
    assert nll(*rows) == pytest.approx(log_loss(rows[1], rows[0], labels=range(5)), rel=1e-12)


def test_accuracy_is_accuracy_score(rows):
    assert accuracy(*rows) == accuracy_score(rows[1], rows[0].argmax(axis=1))


def test_brier_with_two_classes_is_twice_the_binary_score(rows):
    p, y = rows[0][:, 0], (rows[1] == 0).astype(int)
    both = brier(np.column_stack([1 - p, p]), y)
    assert both == pytest.approx(2 * brier_score_loss(y, p), rel=1e-12)


def test_brier_is_the_square_distance_from_one_hot(rows):
    probs, labels = rows
    distance = ((probs - np.eye(5)[labels]) ** 2).sum(axis=1).mean()
    assert brier(probs, labels) == pytest.approx(distance, rel=1e-12)


def test_top1_brier_is_the_binary_score_of_being_right(rows):
    c, r = rows[0].max(axis=1), rows[0].argmax(axis=1) == rows[1]
    assert top1_brier(c, r) == pytest.approx(brier_score_loss(r, c), rel=1e-12)


def test_a_probability_of_zero_costs_what_the_smallest_float32_does():
    assert nll([[1.0, 0.0]], [1]) == pytest.approx(87.336545)
    assert nll([[1.0, 0.0], [0.5, 0.5]], [0, 1]) == pytest.approx(np.log(2) / 2)


@pytest.mark.parametrize("half", [True, False, "auto"])
@pytest.mark.parametrize("k", [2, 5])
def test_brier_scaled_by_half_is_scikit_learns(k, half):
    rng = np.random.default_rng(1)
    probs, labels = rng.dirichlet(np.ones(k), 400), rng.integers(0, k, 400)
    whole = ((probs - np.eye(k)[labels]) ** 2).sum(axis=1).mean()
    scale = 0.5 if half is True or (half == "auto" and k == 2) else 1.0
    assert brier(probs, labels, scale_by_half=half) == pytest.approx(scale * whole, rel=1e-12)
    if "scale_by_half" in inspect.signature(brier_score_loss).parameters:  # scikit-learn 1.7
        theirs = brier_score_loss(labels, probs, labels=range(k), scale_by_half=half)
        assert brier(probs, labels, scale_by_half=half) == pytest.approx(theirs, rel=1e-12)
    drawn = bootstrap(brier, probs, labels, n_resamples=20, scale_by_half=half)
    plain = bootstrap(brier, probs, labels, n_resamples=20)
    assert drawn.high / plain.high == pytest.approx(drawn.value / plain.value, rel=1e-9)


def test_brier_knows_three_ways_to_scale(rows):
    with pytest.raises(InputError, match=r'must be True, False or "auto"; got 0\.5'):
        brier(*rows, scale_by_half=0.5)
