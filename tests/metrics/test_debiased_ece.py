"""Kumar's debiased error."""

from __future__ import annotations

import calibration
import numpy as np
import pytest

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


def test_a_constant_offset_is_read_off():
    rng = np.random.default_rng(2)
    c = rng.uniform(0.5, 1.0, 100_000)
    # Standard error of the accuracy is 0.0015.
    assert debiased_ece(c, rng.random(len(c)) < c - 0.1) == pytest.approx(0.1, abs=0.005)


def test_bins_of_one_row_add_nothing():
    assert debiased_ece([0.9, 0.2, 0.4], [False, True, False]) == 0.0
    # One bin of two rows (0.8, 0.9 with accuracy 1/2) and one row alone.
    value = debiased_ece([0.1, 0.8, 0.9], [True, True, False], n_bins=2, binning="width")
    assert value == pytest.approx(np.sqrt(max(0, 2 / 3 * (0.35**2 - 0.25))))
    value = debiased_ece([0.1, 0.8, 0.9], [True, False, False], n_bins=2, binning="width")
    assert value == pytest.approx(np.sqrt(2 / 3) * 0.85)
