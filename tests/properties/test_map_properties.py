"""What holds for maps and their arithmetic whatever the numbers are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from map_data import quiet_fit

from shiftcal import maps
from shiftcal.numerics.fits import (
    distinct,
    equal_weight_bins,
    lowest_top1,
    rows_with_top1,
    solve_beta,
    solve_mixture,
    top1_log_odds,
)


def logits_of(shape, largest=40.0):
    # to a thousandth, so that rows and classes tie now and then and differ visibly if not
    steps = st.integers(-int(largest * 1000), int(largest * 1000))
    return arrays(np.int64, shape, elements=steps).map(lambda whole: whole / 1000)


def reads_as_probabilities(logits):
    """Such a set is rejected, or warned about, and rightly."""
    sums = logits.sum(axis=1)
    return logits.min() >= 0 and (np.allclose(sums, 1, atol=0.01) or np.allclose(sums, 100, atol=1))


@st.composite
def labelled(draw, most_rows=25):
    n, k = draw(st.integers(1, most_rows)), draw(st.integers(2, 5))
    logits = draw(logits_of((n, k)))
    labels = draw(arrays(np.int64, n, elements=st.integers(0, k - 1)))
    weights = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    assume(weights.any())
    assume(not reads_as_probabilities(logits))
    return logits, labels, weights


@pytest.mark.parametrize("name", maps.names())
@given(data=labelled())
def test_any_set_gives_rows_of_probabilities(name, data):
    logits, labels, weights = data
    fitted = quiet_fit(maps.get(name)(), logits, labels, sample_weight=weights)
    probs = fitted.predict_proba(logits)
    assert (probs >= 0).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    if fitted.preserves_accuracy:
        np.testing.assert_array_equal(probs.argmax(axis=1), logits.argmax(axis=1))


@pytest.mark.parametrize("name", maps.names())
@given(data=labelled(), shift=st.integers(-64, 64))
def test_any_whole_number_added_to_all_logits_changes_nothing(name, data, shift):
    logits, labels, weights = data
    fitted = quiet_fit(maps.get(name)(), logits, labels, sample_weight=weights)
    assume(not reads_as_probabilities(logits + shift))
    np.testing.assert_allclose(
        fitted.predict_proba(logits + shift), fitted.predict_proba(logits), rtol=0, atol=1e-8
    )


@given(
    data=st.tuples(st.integers(1, 20), st.integers(2, 8)).flatmap(
        lambda shape: st.tuples(
            logits_of(shape, 900.0), arrays(np.float64, shape[0], elements=st.floats(0, 1))
        )
    )
)
def test_rows_have_the_confidence_asked_for_and_keep_the_order_of_the_classes(data):
    logits, confidence = data
    rows = rows_with_top1(logits, confidence)
    k = logits.shape[1]
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(rows.max(axis=1), np.clip(confidence, lowest_top1(k), 1))
    np.testing.assert_array_equal(rows.argmax(axis=1), logits.argmax(axis=1))
    order = np.argsort(-logits, axis=1, kind="stable")
    falling = np.take_along_axis(rows, order, axis=1)
    assert (np.diff(falling, axis=1) <= 1e-15).all()


@given(st.integers(1, 30).flatmap(lambda n: st.integers(2, 6).flatmap(lambda k: logits_of((n, k)))))
def test_log_odds_give_the_largest_probability(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        1 / (1 + np.exp(-top1_log_odds(logits))), 1 / e.sum(axis=1), rtol=1e-13
    )


@st.composite
def groups(draw):
    n = draw(st.integers(1, 60))
    values = draw(arrays(np.int64, n, elements=st.integers(0, 30))) / 30
    correct = draw(arrays(np.int64, n, elements=st.integers(0, 1))).astype(float)
    weights = draw(arrays(np.int64, n, elements=st.integers(1, 9))).astype(float)
    return values, correct, weights


@given(groups(), st.integers(1, 20))
def test_bins_are_no_heavier_than_their_share_and_a_tie(data, n_bins):
    values, correct, weights = data
    found = distinct(values, correct, weights)
    edges, accuracy = equal_weight_bins(found, n_bins)
    assert (np.diff(edges) > 0).all()
    assert len(accuracy) == len(edges) + 1 <= min(n_bins, len(found.value))
    bins = np.searchsorted(edges, values)
    shares = weights / weights.sum()
    heavy = np.bincount(bins, shares, minlength=len(accuracy))
    assert (heavy > 0).all()
    assert heavy.max() <= 1 / n_bins + found.weight.max() + 1e-12
    wanted = np.bincount(bins, shares * correct, minlength=len(accuracy)) / heavy
    np.testing.assert_allclose(accuracy, wanted, rtol=0, atol=1e-12)


@given(
    st.tuples(st.integers(1, 40), st.integers(2, 4)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.floats(1e-3, 1))
    )
)
def test_mixture_weights_lie_on_the_simplex_and_are_the_best(densities):
    weights, gap = solve_mixture(densities, None)
    assert weights.min() >= 0
    assert abs(weights.sum() - 1) < 1e-12
    assert -1e-9 < gap < 1e-5
    best = np.log(densities @ weights).mean()
    for corner in np.eye(densities.shape[1]):
        assert np.log(densities @ corner).mean() <= best + gap + 1e-9


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(
            arrays(np.float64, n, elements=st.floats(-3, 27)),
            arrays(np.int64, n, elements=st.integers(0, 1)),
        )
    )
)
def test_the_beta_curve_rises_and_is_calibrated_in_the_mean(data):
    log_odds, correct = data[0], data[1].astype(float)
    (a, b, m), _ = solve_beta(log_odds, correct, np.ones(len(correct)), ridge=1e-6)
    assert a >= 0
    assert b >= 0
    of_one, of_zero = -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)
    mean = (1 / (1 + np.exp(-(a * of_one - b * of_zero + m)))).mean()
    # the slope by m is zero at the optimum; the ridge's part of it is 2e-6 m
    assert abs(mean - correct.mean()) <= 2.1e-6 * abs(m) + 1e-6
