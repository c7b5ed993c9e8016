"""A threshold with as many scores below it as rows are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.numerics.samples import atc_threshold, share_at_or_above


@given(st.sets(st.integers(-1000, 1000), min_size=1, max_size=40), st.data())
def test_exactly_as_many_scores_lie_below_as_are_wrong(distinct, data):
    scores = np.array(data.draw(st.permutations(sorted(distinct)))) / 7
    n_wrong = data.draw(st.integers(0, len(scores)))
    threshold = atc_threshold(scores, n_wrong)
    assert sum(s < threshold for s in scores.tolist()) == n_wrong
    assert share_at_or_above(scores, threshold) == pytest.approx(1 - n_wrong / len(scores))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.data())
def test_where_scores_tie_no_more_lie_below_than_are_wrong(values, data):
    scores = np.array(values, dtype=float)
    n_wrong = data.draw(st.integers(0, len(scores)))
    threshold = atc_threshold(scores, n_wrong)
    below = sum(s < threshold for s in values)
    assert below <= n_wrong
    # right, or the next higher threshold would leave too many below
    assert below == n_wrong or sum(s <= threshold for s in values) > n_wrong


def test_the_threshold_is_a_score_of_the_set():
    assert atc_threshold(np.array([0.9, 0.2, 0.7, 0.4]), 1) == 0.4
    assert atc_threshold(np.array([0.9, 0.2, 0.7, 0.4]), 3) == 0.9


def test_none_or_all_wrong_put_it_beyond_every_score():
    scores = np.array([-0.3, -0.1])  # as negative entropies, for which 0 would be no lower end
    assert atc_threshold(scores, 0) == -np.inf
    assert atc_threshold(scores, 2) == np.inf
    assert share_at_or_above(scores, -np.inf) == 1.0
    assert share_at_or_above(scores, np.inf) == 0.0
