"""What the weights say about themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shiftcal.methods.weighted import (
    ImportanceWeights,
    effective_sample_size,
    weight_details,
    weight_flags,
)


def gaussian(n, shift, *, seed):
    return np.random.default_rng(seed).standard_normal((n, 3)) + shift


SOURCE, HELD_OUT = gaussian(1000, 0.0, seed=1), gaussian(400, 0.0, seed=2)


def codes(model, weights):
    return [flag.code for flag in weight_flags(weights, model)]


def test_one_large_weight_counts_one_sample():
    assert effective_sample_size(np.array([1e100, 1e-100, 1.0])) == pytest.approx(1.0)


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(1e-100, 1e100)))
def test_the_effective_size_lies_between_one_and_the_size(weights):
    assert 1 - 1e-9 <= effective_sample_size(weights) <= len(weights) * (1 + 1e-9)


def test_a_mild_shift_raises_no_flag_and_its_numbers_are_those_of_the_weights():
    model = ImportanceWeights(clip=1.5).fit(SOURCE, gaussian(1000, 0.3, seed=3))
    w = model.weights(HELD_OUT)
    assert codes(model, w) == []
    details = weight_details(w, model, HELD_OUT)
    assert details["mean_weight"] == pytest.approx(w.mean())
    assert details["largest_weight"] == pytest.approx(1.5)
    assert details["effective_sample_size"] == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert details["share_clipped"] == pytest.approx((w >= 1.5 - 1e-12).mean())
    assert details["domain_auc"] == model.auc_


def test_separable_domains_are_flagged():
    model = ImportanceWeights().fit(SOURCE, gaussian(1000, 5.0, seed=4))
    flags = list(weight_flags(model.weights(HELD_OUT), model))
    assert [flag.code for flag in flags] == ["domains-separable", "few-effective-samples"]
    assert "AUC 1.0000" in flags[0].message
    assert "out of 400" in flags[1].message


def test_domains_are_called_separable_from_an_auc_of_099_on():
    model = ImportanceWeights().fit(SOURCE, gaussian(1000, 0.3, seed=3))
    w = model.weights(HELD_OUT)
    for auc, flagged in ((0.9899, []), (0.99, ["domains-separable"])):
        model.auc_ = auc
        assert codes(model, w) == flagged


def test_fewer_than_thirty_effective_samples_are_few():
    model = ImportanceWeights().fit(SOURCE, gaussian(1000, 0.3, seed=3))
    assert codes(model, np.ones(30)) == []
    assert codes(model, np.ones(29)) == ["few-effective-samples"]
