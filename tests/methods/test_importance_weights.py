"""Importance weights against the density ratio they estimate, and at their corners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from shiftcal.errors import InputError
from shiftcal.methods.weighted import ImportanceWeights, effective_sample_size, weight_flags


def gaussian(n, shift, *, seed, d=3):
    f = np.random.default_rng(seed).standard_normal((n, d))
    f[:, 0] += shift
    return f


SOURCE = gaussian(4000, 0.0, seed=1)
HELD_OUT = gaussian(1000, 0.0, seed=2)
TARGET = gaussian(4000, 1.0, seed=3)


def test_the_weights_are_the_true_density_ratio_where_it_is_log_linear():
    model = ImportanceWeights().fit(SOURCE, TARGET)
    truth = HELD_OUT[:, 0] - 0.5
    error = model.log_weights(HELD_OUT) - truth
    # 4,000 rows a domain: a standard error of about 0.03 in each coefficient.
    assert np.abs(error).max() < 0.4
    assert np.corrcoef(model.log_weights(HELD_OUT), truth)[0, 1] > 0.99
    assert model.coef_ == pytest.approx([1.0, 0.0, 0.0], abs=0.12)
    assert model.intercept_ == pytest.approx(-0.5, abs=0.12)


def test_identical_domains_have_weights_near_one():
    model = ImportanceWeights().fit(SOURCE, gaussian(4000, 0.0, seed=4))
    w = model.weights(HELD_OUT)
    assert w.mean() == pytest.approx(1.0, abs=0.02)
    assert np.abs(np.log(w)).max() < 0.3
    assert model.auc_ == pytest.approx(0.5, abs=0.03)


def test_drawing_up_the_smaller_domain_is_what_repeating_its_rows_is():
    small = gaussian(300, 0.7, seed=6)
    model = ImportanceWeights(seed=9).fit(SOURCE, small)
    drawn = small[np.random.default_rng(9).integers(300, size=len(SOURCE))]
    # The reference's own call: source is class 1, target class 0, all defaults.
    reference = LogisticRegression().fit(
        np.concatenate([SOURCE, drawn]), np.repeat([1, 0], len(SOURCE))
    )
    p = reference.predict_proba(HELD_OUT)
    # Both stop at a gradient of 1e-4, on the way down from two sides.
    np.testing.assert_allclose(model.weights(HELD_OUT), p[:, 0] / p[:, 1], rtol=1e-3)


def test_the_seed_fixes_the_weights_and_another_seed_changes_them():
    small = gaussian(200, 1.0, seed=7)
    first, again, other = (
        ImportanceWeights(seed=seed).fit(SOURCE, small).weights(HELD_OUT) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first / other - 1).max() > 1e-3


def test_separable_domains_give_finite_positive_weights():
    model = ImportanceWeights().fit(SOURCE, gaussian(4000, 40.0, seed=8))
    w = model.weights(np.concatenate([HELD_OUT, HELD_OUT * 1e4]))
    assert np.isfinite(w).all()
    assert (w > 0).all()
    assert w.max() == pytest.approx(1e100)
    assert w.min() == pytest.approx(1e-100)
    assert model.auc_ == pytest.approx(1.0)


def test_clip_is_the_largest_weight_and_leaves_the_others_alone():
    free = ImportanceWeights().fit(SOURCE, TARGET)
    clipped = ImportanceWeights(clip=2.0).fit(SOURCE, TARGET)
    w = free.weights(HELD_OUT)
    np.testing.assert_allclose(clipped.weights(HELD_OUT), np.minimum(w, 2.0))
    assert free.share_clipped(HELD_OUT) == 0.0
    assert clipped.share_clipped(HELD_OUT) == pytest.approx((w > 2.0).mean())
    assert 0 < clipped.share_clipped(HELD_OUT) < 1


def test_standardising_undoes_the_units_of_the_features():
    units = np.array([1e-3, 1.0, 1e3])
    offset = np.array([5.0, 0.0, -2e3])
    plain = ImportanceWeights(standardize=True).fit(SOURCE, TARGET)
    scaled = ImportanceWeights(standardize=True).fit(
        SOURCE * units + offset, TARGET * units + offset
    )
    np.testing.assert_allclose(
        scaled.weights(HELD_OUT * units + offset), plain.weights(HELD_OUT), rtol=1e-6
    )


def test_a_regression_that_stops_early_says_so_without_a_warning():
    # Warnings are errors here, so a warning of scikit-learn would fail the test.
    model = ImportanceWeights(max_iter=1).fit(SOURCE, TARGET)
    assert model.status_.code == "not-converged"
    assert "standardize=True" in model.status_.message
    assert ImportanceWeights().fit(SOURCE, TARGET).status_.converged


@pytest.mark.parametrize(
    ("source", "settings", "words"),
    [
        (SOURCE[:0], {}, "source_features must have shape.*not empty"),
        (SOURCE[:, 0], {}, "source_features must have shape"),
        (np.where(SOURCE[5, 1] == SOURCE, np.nan, SOURCE), {}, "row 5 holds nan"),
        *((SOURCE, {"clip": clip}, "clip must be a positive number") for clip in (0, np.inf, "2")),
        (SOURCE, {"max_iter": 0}, "max_iter must be a whole number"),
        (SOURCE, {"seed": -1}, "seed must be a whole number"),
    ],
)
def test_what_cannot_be_used_raises(source, settings, words):
    with pytest.raises(InputError, match=words):
        ImportanceWeights(**settings).fit(source, TARGET)


def test_doubtful_weights_are_flagged():
    model = ImportanceWeights().fit(SOURCE, gaussian(4000, 0.3, seed=3))
    assert effective_sample_size(np.array([1e100, 1e-100, 1.0])) == pytest.approx(1.0)
    for n, auc, wanted in (
        (30, 0.9899, []),
        (29, 0.9899, ["few-effective-samples"]),
        (30, 0.99, ["domains-separable"]),
    ):
        model.auc_ = auc
        assert [flag.code for flag in weight_flags(np.ones(n), model)] == wanted
