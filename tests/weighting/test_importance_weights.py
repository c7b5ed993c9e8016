"""Importance weights against the density ratio they estimate, and at their corners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from shiftcal.errors import InputError
from shiftcal.methods.weighted import ImportanceWeights


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


def test_weighted_source_features_have_the_mean_of_the_target():
    w = ImportanceWeights().fit(SOURCE, TARGET).weights(HELD_OUT)
    # About 400 effective samples: a standard error of 0.05.
    assert w @ HELD_OUT[:, 0] / w.sum() == pytest.approx(1.0, abs=0.2)


def test_identical_domains_have_weights_near_one():
    model = ImportanceWeights().fit(SOURCE, gaussian(4000, 0.0, seed=4))
    w = model.weights(HELD_OUT)
    assert w.mean() == pytest.approx(1.0, abs=0.02)
    assert np.abs(np.log(w)).max() < 0.3
    assert model.auc_ == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("n_target", [1500, 4000, 9000])
def test_any_order_of_sizes_works_and_means_the_same(n_target):
    target = gaussian(n_target, 1.0, seed=5)
    model = ImportanceWeights().fit(SOURCE, target)
    # Balanced, so the intercept is that of equal priors whatever the sizes.
    assert model.intercept_ == pytest.approx(-0.5, abs=0.15)
    assert model.weights(HELD_OUT).mean() == pytest.approx(1.0, abs=0.15)


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


def test_with_equal_sizes_nothing_is_drawn_and_the_reference_is_met():
    model = ImportanceWeights().fit(SOURCE, TARGET)
    reference = LogisticRegression().fit(
        np.concatenate([SOURCE, TARGET]), np.repeat([1, 0], len(SOURCE))
    )
    p = reference.predict_proba(HELD_OUT)
    np.testing.assert_allclose(model.weights(HELD_OUT), p[:, 0] / p[:, 1], rtol=1e-3)
    other_seed = ImportanceWeights(seed=8).fit(SOURCE, TARGET)
    np.testing.assert_array_equal(model.coef_, other_seed.coef_)


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


@pytest.mark.parametrize("standardize", [False, True])
def test_a_column_that_does_not_vary_does_no_harm(standardize):
    def with_constant(f):
        return np.column_stack([f, np.full(len(f), 0.1)])

    plain = ImportanceWeights(standardize=standardize).fit(SOURCE, TARGET)
    wider = ImportanceWeights(standardize=standardize).fit(
        with_constant(SOURCE), with_constant(TARGET)
    )
    np.testing.assert_allclose(
        wider.weights(with_constant(HELD_OUT)), plain.weights(HELD_OUT), rtol=1e-2
    )


def test_a_regression_that_stops_early_says_so_without_a_warning():
    # Warnings are errors here, so a warning of scikit-learn would fail the test.
    model = ImportanceWeights(max_iter=1).fit(SOURCE, TARGET)
    assert model.status_.code == "not-converged"
    assert "standardize=True" in model.status_.message
    assert ImportanceWeights().fit(SOURCE, TARGET).status_.converged
    with pytest.warns(ConvergenceWarning):
        LogisticRegression(max_iter=1).fit(SOURCE, np.arange(len(SOURCE)) % 2)


def test_features_of_absurd_size_give_finite_weights_and_the_status_tells():
    model = ImportanceWeights().fit(SOURCE * 1e200, TARGET * 1e200)
    assert np.isfinite(model.weights(HELD_OUT * 1e200)).all()
    assert model.status_.code == "not-converged"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (SOURCE[:0], "source_features must have shape.*not empty"),
        (SOURCE[:, 0], "source_features must have shape"),
        (np.where(SOURCE[5, 1] == SOURCE, np.nan, SOURCE), "row 5 holds nan"),
    ],
)
def test_features_that_cannot_be_used_are_refused(bad, words):
    with pytest.raises(InputError, match=words):
        ImportanceWeights().fit(bad, TARGET)


@pytest.mark.parametrize("clip", [0, -1.0, np.inf, np.nan, "2"])
def test_a_clip_that_is_no_positive_number_is_refused(clip):
    with pytest.raises(InputError, match="clip must be a positive number, or None"):
        ImportanceWeights(clip=clip).fit(SOURCE, TARGET)


@pytest.mark.parametrize("settings", [{"max_iter": 0}, {"seed": -1}])
def test_other_settings_that_cannot_be_used_are_refused(settings):
    with pytest.raises(InputError, match=f"{next(iter(settings))} must be a whole number"):
        ImportanceWeights(**settings).fit(SOURCE, TARGET)
