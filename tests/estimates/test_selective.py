"""Selective prediction: as many rows as reach the accuracy, and an interval that holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ladder_data import draw, make_bank

import shiftcal as sc
from shiftcal import estimates
from shiftcal.errors import InputError, NotFittedError

# Few distinct values, so that there are ties.
CONFIDENCES = st.lists(st.integers(0, 40).map(lambda i: i / 40), min_size=1, max_size=60)
# At or next to means of such values too.
GOALS = st.one_of(st.floats(0.01, 0.99), st.integers(1, 39).map(lambda i: i / 40))


@given(CONFIDENCES, GOALS)
def test_the_kept_rows_reach_the_goal_and_one_step_further_they_do_not(confidence, goal):
    found = sc.selective(confidence, goal)
    c = np.array(confidence)
    kept = c >= found.threshold
    assert (found.n, found.n_kept) == (len(c), kept.sum())
    assert found.coverage == kept.mean()
    if kept.any():
        assert found.threshold in c
        assert found.accuracy >= goal
        assert found.accuracy == pytest.approx(c[kept].mean(), abs=1e-12)
        assert 0 <= found.low <= found.accuracy <= found.high <= 1
    else:
        assert found.threshold == math.inf
        assert np.isnan([found.accuracy, found.low, found.high]).all()
    if not kept.all():
        more = c >= c[~kept].max()
        assert c[more].mean() < goal + 1e-12


@given(CONFIDENCES, GOALS, st.floats(0, 1), st.floats(0, 1))
def test_an_interval_of_the_accuracy_widens_that_of_the_kept_rows(confidence, goal, a, b):
    exact = sc.selective(confidence, goal)
    found = sc.selective(confidence, goal, accuracy=(min(a, b), max(a, b)))
    assert (found.threshold, found.n_kept) == (exact.threshold, exact.n_kept)
    if found.n_kept:
        assert found.low <= exact.low + 1e-12
        assert found.high >= exact.high - 1e-12


def test_the_order_of_rows_does_not_matter():
    c = np.random.default_rng(0).beta(5, 1, 500).round(2)
    assert sc.selective(c, 0.9) == sc.selective(c[::-1], 0.9)


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("moved", [0.0, 0.7])
def test_the_interval_holds_as_often_as_it_says(level, moved):
    rng = np.random.default_rng(3)
    held = []
    for _ in range(300):
        c = rng.beta(4, 1, 400)
        error = moved * rng.standard_normal()  # of all log-odds

        def true(by, c=c):
            return c * np.exp(by) / (c * np.exp(by) + 1 - c)

        z = {0.8: 1.2816, 0.95: 1.96}[level]
        interval = true(-moved * z).mean(), true(moved * z).mean()
        found = sc.selective(c, 0.9, accuracy=interval if moved else None, level=level)
        correct = rng.random(400) < true(error)
        held.append(found.low <= correct[c >= found.threshold].mean() <= found.high)
    assert np.mean(held) >= level - 0.03


def test_one_row_and_certain_rows_are_not_certain():
    for confidence in ([1.0], [1.0] * 50):
        found = sc.selective(confidence, 0.9)
        assert (found.coverage, found.accuracy, found.high) == (1, 1, 1)
        assert found.low < 1
    assert sc.selective([0.5], 0.9).coverage == 0
    assert str(sc.selective([0.5], 0.9)) == "no rows can be kept at 90 % accuracy"
    text = str(sc.selective([0.96, 0.9, 0.2], 0.92))
    assert text.startswith("keep 2 of 3 rows (66.7 %), with confidence 0.9 or more: expected acc")


@pytest.mark.parametrize(
    ("given", "options", "match"),
    [
        ([], {}, "confidence must have shape"),
        ([0.5, np.nan], {}, "confidence must be finite; row 1 holds nan"),
        ([0.5, 1.2], {}, r"confidence must lie in \[0, 1\]"),
        (np.eye(3), {}, r"confidence must have shape \(n,\)"),
        ([0.5], {"target_accuracy": 95}, "target_accuracy must lie strictly between 0 and 1"),
        ([0.5], {"target_accuracy": 1.0}, "target_accuracy must lie strictly between 0 and 1"),
        ([0.5], {"level": 0}, "level must lie strictly between 0 and 1"),
        *(
            ([0.5], {"accuracy": wrong}, r"accuracy must be the interval \(low, high\)")
            for wrong in (0.7, (0.8, 0.7), (70, 80), (0.1, np.nan), (0.1, 0.2, 0.3), "ab")
        ),
    ],
)
def test_bad_input_is_an_error(given, options, match):
    with pytest.raises(InputError, match=match):
        sc.selective(given, **options)


def test_the_interval_of_all_rows_is_that_of_the_methods_predictions():
    bank = make_bank(600)
    target, truth = draw(600, 0.8, seed=4)
    with pytest.raises(NotFittedError):
        estimates.accuracy_interval(sc.Rehearsal().fit(bank), target)
    rehearsal, realign = sc.Rehearsal().fit(bank), sc.Realign().fit(bank)
    rehearsal.adapt(target)
    low, high = estimates.accuracy_interval(rehearsal, target)
    estimate = estimates.Rehearsed().fit(bank).estimate(target)
    assert (low, high) == (estimate.low, estimate.high)
    assert low < (target.argmax(axis=1) == truth).mean() < high

    details = realign.adapt(target).details
    low, high = estimates.accuracy_interval(realign, target)
    assert low <= details["corrected_accuracy"] <= high
    clean = bank.clean.logits
    realign.adapt(clean)  # which is left alone
    low, high = estimates.accuracy_interval(realign, sc.Scores(clean))
    assert low < bank.clean.summary().accuracy < high

    known = sc.Realign(prior="calibration").fit(bank)
    for method in (sc.TS().fit(bank), known):
        method.adapt(target)
        assert estimates.accuracy_interval(method, target) is None
