"""Intervals from joint draws are those of ``metrics.bootstrap``."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_logits import draw_logits
from hypothesis import given
from hypothesis import strategies as st

from shiftcal import metrics
from shiftcal.cards import Judging
from shiftcal.cards._redraws import Judged, measured
from shiftcal.cards.parts import METRICS
from shiftcal.numerics.softmax import softmax

# Both add the same numbers in another order.
ROUNDING = 1e-12


def expected(probs, labels, judging):
    """The same by the package's own bootstrap, a metric and a draw at a time."""
    found = {}
    for name in METRICS:
        binned = name == "ece"
        arrays = (probs.max(axis=1), probs.argmax(axis=1) == labels) if binned else (probs, labels)
        found[name] = metrics.bootstrap(
            metrics.get(name),
            *arrays,
            n_resamples=judging.n_resamples,
            level=judging.level,
            seed=judging.seed,
            **({"n_bins": judging.n_bins} if binned else {}),
        )
    return found


def agree(told, probs, labels, judging):
    for name, interval in expected(probs, labels, judging).items():
        ends = [told[name].value, told[name].low, told[name].high]
        assert ends == pytest.approx([interval.value, interval.low, interval.high], abs=ROUNDING)


@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_intervals_are_those_of_the_bootstrap_with_the_same_seed(scale, level):
    logits, labels = draw_logits(300, 4, temperature=1.0, seed=3)
    probs = softmax(scale * logits)
    judging = Judging(n_resamples=60, seed=5, level=level)
    (told,) = measured([Judged.of(probs, labels)], judging)
    agree(told, probs, labels, judging)


def test_equal_confidences_share_their_correctness():
    logits, labels = draw_logits(200, 3, temperature=2.0, seed=1)
    probs = softmax(np.round(logits))  # few distinct rows
    assert len(np.unique(probs.max(axis=1))) < 150
    judging = Judging(n_resamples=50, n_bins=7)
    (told,) = measured([Judged.of(probs, labels)], judging)
    agree(told, probs, labels, judging)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=25),
    st.integers(1, 30),
)
def test_any_rows_in_any_number_of_bins_give_the_bootstrap(rows, n_bins):
    top = np.array([0.5 + level / 8 for level, _ in rows])
    probs, labels = np.column_stack([1 - top, top]), np.array([int(right) for _, right in rows])
    judging = Judging(n_resamples=40, n_bins=n_bins)
    (told,) = measured([Judged.of(probs, labels)], judging)
    agree(told, probs, labels, judging)


def test_sets_of_different_size_are_each_measured_by_themselves():
    drawn = [draw_logits(n, 3, temperature=2.0, seed=n) for n in (120, 80, 120)]
    judging = Judging(n_resamples=40)
    told = measured([Judged.of(softmax(z), y) for z, y in drawn], judging)
    for one, (z, y) in zip(told, drawn, strict=True):
        agree(one, softmax(z), y, judging)


def test_more_rows_than_are_held_at_once_change_nothing(monkeypatch):
    logits, labels = draw_logits(150, 3, temperature=2.0, seed=4)
    judged, judging = [Judged.of(softmax(logits), labels)], Judging(n_resamples=45)
    whole = measured(judged, judging)
    monkeypatch.setattr("shiftcal.cards._redraws._BLOCK", 1000)
    assert measured(judged, judging) == whole


@pytest.mark.parametrize(("n", "draws"), [(1, 100), (50, 0)])
def test_one_row_or_no_draws_give_values_without_ends(n, draws):
    logits, labels = draw_logits(n, 3, temperature=1.0, seed=0)
    (told,) = measured([Judged.of(softmax(logits), labels)], Judging(n_resamples=draws))
    assert list(told) == list(METRICS)
    assert all((one.low, one.high) == (None, None) for one in told.values())
    assert told["nll"].value == pytest.approx(metrics.nll(softmax(logits), labels))
