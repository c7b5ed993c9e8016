"""Spline calibration against a spline made in another way."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import draw, top1

from shiftcal.maps import Spline
from shiftcal.numerics.fits import lowest_top1, smoothed_means


def natural_basis(t, knots):
    """Natural cubic splines by truncated powers, all zero at zero (without the constant)."""

    def power(i):
        above = np.maximum(t - knots[i], 0) ** 3 - np.maximum(t - knots[-1], 0) ** 3
        return above / (knots[-1] - knots[i])

    return np.column_stack([t, *(power(i) - power(-2) for i in range(len(knots) - 2))])


@pytest.mark.parametrize("n_knots", [3, 6, 9])
def test_the_confidence_is_that_of_a_spline_by_truncated_powers(n_knots):
    logits, labels = draw(2000, 4, temperature=2.5, seed=1)
    confidence, correct = top1(logits, labels)
    order = np.argsort(confidence)
    t = np.arange(1, 2001) / 2000
    running = np.cumsum(correct[order] - confidence[order]) / 2000
    basis = natural_basis(t, np.linspace(0, 1, n_knots))
    d = basis @ np.linalg.lstsq(basis, running, rcond=None)[0]
    wanted = confidence[order] + np.diff(d, prepend=0) * 2000
    got = Spline(n_knots=n_knots).fit(logits, labels).predict_proba(logits).max(axis=1)
    np.testing.assert_allclose(got[order], np.clip(wanted, lowest_top1(4), 1), atol=1e-7)


def test_differences_are_the_slope_of_the_spline():
    t = np.arange(1, 5001) / 5000
    # D(t) = t^2 / 2 - t^3 / 6 has D' = t - t^2 / 2; a spline with many knots follows it closely,
    # but for its left end, where D is curved and a natural spline is not
    sums = np.diff(t**2 / 2 - t**3 / 6, prepend=0)
    got = smoothed_means(np.full(5000, 1 / 5000), sums, 12)
    inner = slice(1500, 4500)
    np.testing.assert_allclose(got[inner], (t - t**2 / 2)[inner], atol=2e-3)


def test_two_knots_add_the_mean_gap_to_every_confidence():
    logits, labels = draw(1000, 3, temperature=1.2, seed=3)
    confidence, correct = top1(logits, labels)
    fitted = Spline(n_knots=2).fit(logits, labels)
    added = fitted.accuracy_ - fitted.confidence_
    free = (fitted.accuracy_ > 0) & (fitted.accuracy_ < 1)
    assert np.ptp(added[free]) < 1e-9
    # a line through the origin by least squares: near the mean gap, which is its right end
    np.testing.assert_allclose(added[free].mean(), (correct - confidence).mean(), atol=0.03)
