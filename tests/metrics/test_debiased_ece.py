"""Kumar's debiased error."""

from __future__ import annotations

import calibration
import numpy as np
import pytest

from shiftcal import maps
from shiftcal.metrics import debiased_ece, ece


def test_it_agrees_with_the_authors_package():
    rng = np.random.default_rng(0)
    c = rng.beta(6, 2, 1507)  # no ties, sizes that differ by one
    r = (rng.random(len(c)) < c**1.5).astype(int)
    data = list(zip(c, r, strict=True))
    edges = calibration.get_equal_bins(c, num_bins=15)
    theirs = calibration.unbiased_l2_ce(calibration.bin(data, edges))
    # The same formula on the same bins; sums run in another order.
    assert debiased_ece(c, r) == pytest.approx(theirs, abs=1e-12)
    edges = calibration.get_equal_prob_bins(c, num_bins=15)
    theirs = calibration.unbiased_l2_ce(calibration.bin(data, edges))
    assert debiased_ece(c, r, binning="width") == pytest.approx(theirs, abs=1e-12)


def tied(kind, n):
    """Confidence with ties and correctness, as a tree, a histogram or isotonic regression gives."""
    rng = np.random.default_rng(n)
    if kind == "tree":  # five leaves, the smallest a tenth of the rows
        c = rng.choice([0.55, 0.6, 0.8, 0.9, 0.95], n, p=[0.1, 0.2, 0.15, 0.3, 0.25])
        return c, rng.random(n) < c - 0.05
    x = np.log(rng.uniform(0.5, 1.0, n))
    logits = np.column_stack([x, np.log1p(-np.exp(x))])
    labels = (rng.random(n) > np.exp(x) ** 2).astype(int)
    fitted = maps.get(kind)().fit(logits[: n // 2], labels[: n // 2])
    p = fitted.predict_proba(logits)
    return p.max(axis=1), p.argmax(axis=1) == labels


@pytest.mark.parametrize("n", [1507, 40_000])  # sorted, and too many to sort
@pytest.mark.parametrize("kind", ["tree", "histogram", "isotonic"])
def test_ties_stay_together_as_in_the_authors_package(kind, n):
    c, r = tied(kind, n)
    data = list(zip(c, r.astype(int), strict=True))
    theirs = calibration.unbiased_l2_ce(calibration.bin(data, calibration.get_equal_bins(c, 15)))
    assert debiased_ece(c, r) == pytest.approx(theirs, abs=1e-9)
    if kind == "tree":  # every value is a bin
        binned = calibration.bin(data, calibration.get_discrete_bins(c))
        assert debiased_ece(c, r) == pytest.approx(calibration.unbiased_l2_ce(binned), abs=1e-9)


def test_one_value_has_the_variance_of_all_rows():
    value = debiased_ece(np.full(600, 0.9), np.arange(600) < 480)
    assert value == pytest.approx(np.sqrt(0.01 - 0.16 / 599), abs=1e-12)


@pytest.mark.parametrize("values", [[0.9], [0.7, 0.9], [0.5, 0.6, 0.7, 0.8, 0.9]])
def test_a_true_square_of_a_hundredth_comes_back_from_ties(values):
    rng = np.random.default_rng(3)
    squares = []
    for _ in range(400):
        c = rng.choice(values, 2000)
        squares.append(debiased_ece(c, rng.random(2000) < c - 0.1) ** 2)
    # Of one draw the standard error is 0.002, of the mean 0.0001.
    assert np.mean(squares) == pytest.approx(0.01, abs=0.0004)


def test_its_square_is_unbiased_for_a_calibrated_predictor():
    # Squares are cut at zero, so of calibrated draws about half are exactly 0, and the rest are
    # far below what the plug-in error reads.
    rng = np.random.default_rng(1)
    values, plug_in = [], []
    for _ in range(60):
        c = rng.uniform(0.5, 1.0, 1000)
        r = rng.random(1000) < c
        values.append(debiased_ece(c, r))
        plug_in.append(ece(c, r))
    assert 0.3 < np.mean(np.array(values) == 0) < 0.7
    assert np.mean(values) < 0.5 * np.mean(plug_in)
