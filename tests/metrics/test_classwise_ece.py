"""Class-wise ECE."""

from __future__ import annotations

import numpy as np
import pytest
from netcal.metrics import ECE

from shiftcal.checks import check_probs
from shiftcal.metrics import classwise_ece, ece


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 1500)
    labels = (probs.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    return probs**2 / (probs**2).sum(axis=1, keepdims=True), labels


@pytest.mark.parametrize("binning", ["size", "width"])
def test_it_is_the_mean_of_each_column_judged_by_netcal(rows, binning):
    probs, labels = rows
    judge = ECE(15, equal_intervals=binning == "width", detection=True)
    each = [judge.measure(probs[:, j], (labels == j).astype(int)) for j in range(4)]
    assert classwise_ece(probs, labels, binning=binning) == pytest.approx(np.mean(each), abs=1e-12)


def test_two_classes_that_mirror_each_other_have_the_binary_error(rows):
    p, labels = rows[0][:, 0], rows[1] == 0
    both = classwise_ece(np.column_stack([1 - p, p]), labels.astype(int), n_bins=10)
    assert both == pytest.approx(ece(p, labels, n_bins=10), abs=1e-12)


def test_a_class_that_never_occurs_counts():
    probs = np.tile([0.5, 0.4, 0.1], (10, 1))
    labels = np.array([0] * 5 + [1] * 5)
    assert classwise_ece(probs, labels) == pytest.approx((0.0 + 0.1 + 0.1) / 3)


def test_probabilities_equal_in_two_rows_still_tie_after_the_check():
    # 0.1 + 0.7 + 0.2 misses 1 by rounding; dividing by it would tell the tenths apart.
    probs = np.array([[0.1, 0.7, 0.2], [0.1, 0.9, 0.0]])
    checked = check_probs(probs)
    np.testing.assert_array_equal(checked, probs)
    rough = check_probs(np.random.default_rng(0).dirichlet(np.ones(7), 50).astype(np.float32))
    np.testing.assert_array_equal(check_probs(rough), rough)
    assert check_probs([[1.0 + 1e-13, 0.0]]).max() == 1.0
