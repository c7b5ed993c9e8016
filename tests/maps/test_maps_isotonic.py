"""Isotonic regression against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import draw, quiet_fit, top1
from sklearn.isotonic import IsotonicRegression

from shiftcal.maps import Isotonic
from shiftcal.numerics.fits import lowest_top1


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_confidence_is_scikit_learns(seed, weighted):
    logits, labels = draw(1500, 4, temperature=2.5, seed=seed)
    fresh, fresh_labels = draw(500, 4, temperature=2.5, seed=seed + 10)
    weights = np.random.default_rng(seed).exponential(size=1500) if weighted else None
    confidence, correct = top1(logits, labels)
    oracle = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    oracle.fit(confidence, correct, sample_weight=weights)
    fitted = Isotonic().fit(logits, labels, sample_weight=weights)
    wanted = np.clip(oracle.predict(top1(fresh, fresh_labels)[0]), lowest_top1(4), 1)
    # ours are rounded to 12 decimals, and a step may be 1e-6 wide
    np.testing.assert_allclose(fitted.predict_proba(fresh).max(axis=1), wanted, rtol=0, atol=1e-6)


def test_confidences_that_order_wrong_are_pooled():
    logits = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
    labels = np.array([0, 1, 0, 0])  # right, wrong, right, right
    fitted = quiet_fit(Isotonic(), logits, labels)
    got = fitted.predict_proba(logits).max(axis=1)
    np.testing.assert_allclose(got, [lowest_top1(2), lowest_top1(2), 1, 1], atol=1e-9)
    np.testing.assert_allclose(fitted.accuracy_, [0.5, 0.5, 1, 1])
