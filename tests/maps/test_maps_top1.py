"""Whole rows around a calibrated confidence, and what the four maps on it share."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import draw, quiet_fit, softmax
from scipy.optimize import brentq

from shiftcal import maps
from shiftcal.errors import FitWarning
from shiftcal.numerics.fits import lowest_top1, rows_with_top1, top1_log_odds

TOP1 = ("beta", "histogram", "isotonic", "spline")


def filled_by_search(probs, confidence):
    """The same row, by looking for the scale at which capped shares add up."""
    top = int(probs.argmax())
    others = np.delete(probs, top)
    cap, rest = confidence * (1 - 1e-6), 1 - confidence
    scale = brentq(lambda s: np.minimum(cap, s * others).sum() - rest, 0, 1e12, xtol=1e-14)
    return np.insert(np.minimum(cap, scale * others), top, confidence)


@pytest.mark.parametrize("confidence", [0.21, 0.25, 0.3, 0.45, 0.6, 0.9, 0.9999])
def test_rows_are_filled_as_a_plain_search_fills_them(confidence):
    logits, _ = draw(40, 5, temperature=1.0, seed=1)
    rows = rows_with_top1(logits, np.full(40, confidence))
    wanted = [filled_by_search(p, confidence) for p in softmax(logits)]
    np.testing.assert_allclose(rows, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 1000])
def test_a_confidence_below_chance_is_raised_to_the_least_there_is(k):
    logits = np.random.default_rng(3).standard_normal((5, k))
    rows = rows_with_top1(logits, np.zeros(5))
    np.testing.assert_allclose(rows.max(axis=1), lowest_top1(k), rtol=1e-12)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(rows.argmax(axis=1), logits.argmax(axis=1))
    assert 1 / k < lowest_top1(k) < 1 / k + 1e-6


@pytest.mark.parametrize("name", TOP1)
def test_the_largest_probability_is_the_calibrated_confidence(name):
    logits, labels = draw(2000, 5, temperature=2.5, seed=5)
    fitted = maps.get(name)().fit(logits, labels)
    wanted = np.clip(fitted._calibrate(top1_log_odds(logits)), lowest_top1(5), 1)
    np.testing.assert_array_equal(fitted.predict_proba(logits).max(axis=1), wanted)


@pytest.mark.parametrize("name", TOP1)
def test_an_error_free_set_raises_every_confidence(name):
    logits, _ = draw(300, 4, temperature=2.0, seed=6)
    estimator = maps.get(name)()
    with pytest.warns(FitWarning, match="every row of this set is predicted right"):
        estimator.fit(logits, logits.argmax(axis=1))
    assert estimator.status_.code == "at-upper-bound"
    assert estimator.predict_proba(logits).max(axis=1).mean() > 0.99


@pytest.mark.parametrize("name", TOP1)
def test_a_set_without_a_right_prediction_lowers_every_confidence_to_the_least(name):
    logits, _ = draw(300, 4, temperature=2.0, seed=7)
    estimator = maps.get(name)()
    with pytest.warns(FitWarning, match=r"no row of this set is predicted right.*check that"):
        estimator.fit(logits, logits.argmin(axis=1))
    assert estimator.status_.code == "at-lower-bound"
    np.testing.assert_allclose(estimator.predict_proba(logits).max(axis=1), 0.25, atol=1e-3)


@pytest.mark.parametrize("name", TOP1)
@pytest.mark.parametrize("right", [0, 1, 2, 3, 4])
def test_of_rows_all_alike_the_accuracy_is_the_confidence(name, right):
    logits = np.tile([3.0, 1.0, 0.0, -1.0], (4, 1))
    labels = np.where(np.arange(4) < right, 0, 2)
    fitted = quiet_fit(maps.get(name)(), logits, labels)
    # beta is pulled towards the identity by its ridge of 1e-6
    wanted = max(right / 4, lowest_top1(4))
    np.testing.assert_allclose(fitted.predict_proba(logits[:1]).max(), wanted, atol=1e-4)


@pytest.mark.parametrize("name", TOP1)
def test_confidences_equal_but_for_rounding_are_ties(name):
    logits, labels = draw(400, 4, temperature=2.0, seed=9)
    turned = np.roll(logits, 1, axis=1)  # the same sums in another order
    fitted = maps.get(name)().fit(np.vstack([logits, turned]), np.append(labels, (labels + 2) % 4))
    first = fitted.predict_proba(logits).max(axis=1)
    np.testing.assert_allclose(first, fitted.predict_proba(turned).max(axis=1), rtol=0, atol=1e-9)
