"""Methods that adapt to sums over the target's rows choose as they do for the rows."""

from __future__ import annotations

import numpy as np
import pytest
from monitored import bank, method, rows

from shiftcal import SAC, estimates, methods
from shiftcal.errors import InputError
from shiftcal.methods.rehearsal import Grouped, row_moments

TARGET = rows(1000, 0.8, seed=5)


def sums_of(logits, groups=20):
    moments = row_moments(logits)
    parts = moments.reshape(groups, -1, moments.shape[1])
    squares = float((moments[:, 0] ** 2).sum())
    return Grouped(parts.sum(axis=1), np.full(groups, parts.shape[1]), squares)


@pytest.mark.parametrize("name", ["rehearsal", "sac", "ace", "sts", "ts", "vanilla"])
def test_the_choice_is_that_of_the_rows(name):
    known = method(name)
    wanted = known.adapt(TARGET)
    found = known.adapt_moments(sums_of(TARGET))
    assert found.temperature == pytest.approx(wanted.temperature, rel=1e-9)
    assert (found.index, found.n_target) == (wanted.index, wanted.n_target)
    assert [flag.code for flag in found.flags] == [flag.code for flag in wanted.flags]
    assert known.selection_ is found


def test_weights_count_as_often_as_they_say():
    """A block of weight two is as good as twice the block, but for how noisy it is."""
    sums = sums_of(TARGET, 2)
    weights = np.array([2.0, 1.0])
    weighed = Grouped(sums.sums * weights[:, None], sums.counts * weights)
    twice = np.concatenate([TARGET[:500], TARGET])
    assert weighed.mean_confidence == pytest.approx(sums_of(twice, 3).mean_confidence, rel=1e-12)
    np.testing.assert_allclose(weighed.statistics(), sums_of(twice, 3).statistics(), rtol=1e-12)


@pytest.mark.parametrize("name", ["cpcs", "transcal", "pseudocal"])
def test_others_say_that_they_need_rows(name):
    assert "every row" in methods.get(name)().needs_rows()


def test_sac_by_other_distances_refuses():
    with pytest.raises(InputError, match="sac cannot adapt to sums: distance"):
        SAC(distance="ks").fit(bank()).adapt_moments(sums_of(TARGET))


def test_sums_of_other_classes_are_refused():
    with pytest.raises(InputError, match="14 columns of 6 classes; got 12"):
        method("ts").adapt_moments(sums_of(TARGET[:, :5]))


@pytest.mark.parametrize("name", ["rehearsed", "surrogate-curve"])
def test_an_estimate_from_sums_is_that_of_the_rows(name):
    known = estimates.get(name)().fit(bank(300))
    wanted = known.estimate(TARGET[:200])
    found = known.estimate_moments(sums_of(TARGET[:200]), level=0.95)
    assert found.value == pytest.approx(wanted.value, rel=1e-9)
    assert found.n_target == 200
    with pytest.raises(InputError, match="14 columns of 6 classes; got 12"):
        known.estimate_moments(sums_of(TARGET[:200, :5]))


def test_an_estimator_that_needs_rows_says_so():
    with pytest.raises(InputError, match="atc cannot estimate from sums"):
        estimates.get("atc")().fit(bank(300)).estimate_moments(sums_of(TARGET))
