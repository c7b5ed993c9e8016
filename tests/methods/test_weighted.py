"""Importance weights, CPCS and TransCal: the published steps, known shifts, and corners."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from gaussian_world import bank_of, draw_domain
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from shiftcal import CPCS, TransCal, maps
from shiftcal.errors import InputError
from shiftcal.methods.weighted import ImportanceWeights, effective_sample_size, weight_flags


def gaussian(n, shift, *, seed, d=3):
    f = np.random.default_rng(seed).standard_normal((n, d))
    f[:, 0] += shift
    return f


SOURCE = gaussian(4000, 0.0, seed=1)
HELD_OUT = gaussian(1000, 0.0, seed=2)
MOVED = gaussian(4000, 1.0, seed=3)


def test_the_weights_are_the_true_density_ratio_where_it_is_log_linear():
    model = ImportanceWeights().fit(SOURCE, MOVED)
    truth = HELD_OUT[:, 0] - 0.5
    error = model.log_weights(HELD_OUT) - truth
    # 4,000 rows a domain: a standard error of about 0.03 in each coefficient.
    assert np.abs(error).max() < 0.4
    assert np.corrcoef(model.log_weights(HELD_OUT), truth)[0, 1] > 0.99
    assert model.coef_ == pytest.approx([1.0, 0.0, 0.0], abs=0.12)
    assert model.intercept_ == pytest.approx(-0.5, abs=0.12)


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


def test_separable_domains_give_finite_positive_weights():
    model = ImportanceWeights().fit(SOURCE, gaussian(4000, 40.0, seed=8))
    w = model.weights(np.concatenate([HELD_OUT, HELD_OUT * 1e4]))
    assert np.isfinite(w).all()
    assert (w > 0).all()
    assert w.max() == pytest.approx(1e100)
    assert w.min() == pytest.approx(1e-100)
    assert model.auc_ == pytest.approx(1.0)


def test_a_regression_that_stops_early_says_so_without_a_warning():
    # Warnings are errors here, so a warning of scikit-learn would fail the test.
    model = ImportanceWeights(max_iter=1).fit(SOURCE, MOVED)
    assert model.status_.code == "not-converged"
    assert "standardize=True" in model.status_.message
    assert ImportanceWeights().fit(SOURCE, MOVED).status_.converged


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


TRAIN = draw_domain(3000, 0.0, seed=21)
CALIBRATION = draw_domain(2000, 0.0, seed=22)
TARGET = draw_domain(3000, 1.0, seed=23)
BANK = bank_of(CALIBRATION)


def cpcs(**settings):
    return CPCS(**settings).fit(BANK, source_features=TRAIN.features)


def brier_temperature(sample, weights=None):
    return maps.get("brier-temperature")().fit(sample.logits, sample.labels, weights).temperature_


def searched_temperature(sample, weights):
    """Least weighted Brier score by scipy's bounded search, from the definition."""
    hot = np.eye(sample.logits.shape[1])[sample.labels]

    def score(log_t):
        p = softmax(sample.logits / np.exp(log_t), axis=1)
        return weights @ ((p - hot) ** 2).sum(axis=1)

    found = minimize_scalar(score, bounds=(-1.0, 3.0), method="bounded", options={"xatol": 1e-9})
    return np.exp(found.x)


def test_a_target_like_source_train_has_unit_weights_and_equals_brier_temperature():
    method = cpcs()
    selection = method.adapt(TARGET.logits, TRAIN.features)
    assert selection.details["mean_weight"] == pytest.approx(1.0)
    assert selection.temperature == pytest.approx(brier_temperature(CALIBRATION), rel=1e-6)
    np.testing.assert_allclose(
        method.predict_proba(TARGET.logits),
        softmax(TARGET.logits / brier_temperature(CALIBRATION), axis=1),
        atol=1e-6,
    )


def test_the_port_is_the_published_code_with_another_search():
    discriminator = LogisticRegression().fit(
        np.concatenate([TRAIN.features, TARGET.features]), np.repeat([1, 0], 3000)
    )
    p = discriminator.predict_proba(CALIBRATION.features)
    temperature = cpcs().adapt(TARGET.logits, TARGET.features).temperature
    # The regression stops at a gradient of 1e-4.
    assert temperature == pytest.approx(
        searched_temperature(CALIBRATION, p[:, 0] / p[:, 1]), rel=1e-4
    )


@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_the_temperature_moves_from_the_sources_towards_the_targets(shift):
    target = draw_domain(3000, shift, seed=25)
    source_t, target_t = brier_temperature(CALIBRATION), brier_temperature(target)
    found = cpcs().adapt(target.logits, target.features).temperature
    assert 0.6 < np.log(found / source_t) / np.log(target_t / source_t) < 1.4


def test_separable_domains_are_flagged_and_give_a_finite_temperature():
    far = TARGET.features + 30.0
    selection = cpcs().adapt(TARGET.logits, far)
    assert selection.has("domains-separable")
    assert 0.01 <= selection.temperature <= 100
    assert "domains-separable" in str(selection)


def test_what_is_missing_is_named_with_the_three_sets():
    three = r"source-train .* calibration .* target"
    with pytest.raises(InputError, match=three):
        CPCS().fit(BANK)
    with pytest.raises(InputError, match=three):
        CPCS().fit(CALIBRATION.logits, CALIBRATION.labels, source_features=TRAIN.features)
    with pytest.raises(InputError, match=three):
        cpcs().adapt(TARGET.logits)


def test_features_of_another_layer_are_refused_as_soon_as_they_are_seen():
    with pytest.raises(InputError, match=r"features of the bank must have 2 columns.*got 3"):
        CPCS().fit(BANK, source_features=TRAIN.features[:, :2])
    with pytest.raises(InputError, match=r"target_features must have 3 columns.*got 2"):
        cpcs().adapt(TARGET.logits, TARGET.features[:, :2])


def test_repeats_average_the_temperatures_of_further_seeds():
    few = TARGET.logits[:400], TARGET.features[:400]  # drawn up to the size of source-train
    alone = [cpcs(seed=seed).adapt(*few) for seed in (5, 6, 7)]
    selection = cpcs(seed=5, repeats=3).adapt(*few)
    temperatures = [one.temperature for one in alone]
    assert len(set(temperatures)) == 3
    assert selection.temperature == pytest.approx(np.mean(temperatures), rel=1e-12)
    sd = selection.details.pop("temperature_sd")
    assert sd == pytest.approx(np.std(temperatures, ddof=1), rel=1e-9)
    for name, value in selection.details.items():
        assert value == pytest.approx(np.mean([one.details[name] for one in alone]), rel=1e-12)
    assert {flag.code for flag in selection.flags} == {f.code for a in alone for f in a.flags}
    assert cpcs(seed=5, repeats=1).adapt(*few) == alone[0]


# Logits a third of what they should be: the model is under-confident.
SHY = draw_domain(3000, 0.3, seed=34, log_t=-1.1)


def transcal(bank=BANK, **settings):
    return TransCal(**settings).fit(bank, source_features=TRAIN.features)


def confidence_at(logits, temperature):
    return softmax(logits / temperature, axis=1).max(axis=1).mean()


def published(train, calibration, target, *, lower=1.0):
    """The published steps from end to end, with scikit-learn's and scipy's own parts."""
    found = minimize_scalar(
        lambda t: (
            -log_softmax(calibration.logits / t, axis=1)[
                np.arange(len(calibration.labels)), calibration.labels
            ].mean()
        ),
        bounds=(0.05, 20.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    source_confidence = confidence_at(calibration.logits, found.x)
    error = (calibration.logits.argmax(axis=1) != calibration.labels).astype(float)
    domains = LogisticRegression().fit(
        np.concatenate([train.features, target.features]), np.repeat([1, 0], len(train.features))
    )
    p = domains.predict_proba(calibration.features)
    weight = p[:, 0] / p[:, 1]

    def objective(x):
        w = weight ** x[1]
        a = w * error
        eta_1 = -np.cov(a, w)[0, 1] / np.var(w, ddof=1)
        right = 1 - error
        eta_2 = -np.cov(a + eta_1 * (w - 1), right)[0, 1] / np.var(right, ddof=1)
        risk = a.mean() + eta_1 * (w.mean() - 1) + eta_2 * (right.mean() - source_confidence)
        return abs(confidence_at(target.logits, x[0]) - (1 - risk))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0/0 at exponent zero
        return minimize(
            objective, np.array([2.0, 0.5]), method="SLSQP", bounds=((lower, None), (0.0, 1.0))
        )


def test_the_temperature_is_that_of_the_published_steps():
    theirs = published(TRAIN, CALIBRATION, TARGET)
    selection = transcal().adapt(TARGET.logits, TARGET.features)
    # The regression stops at a gradient of 1e-4, the search at a change of 1e-6.
    assert selection.temperature == pytest.approx(theirs.x[0], rel=2e-3)
    assert selection.details["lambda"] == pytest.approx(theirs.x[1], abs=2e-3)
    assert selection.details["objective"] == pytest.approx(theirs.fun, abs=1e-4)


def test_the_free_reading_is_the_published_one_without_its_bound():
    theirs = published(TRAIN, CALIBRATION, SHY, lower=0.01)
    selection = transcal(reading="free").adapt(SHY.logits, SHY.features)
    assert selection.temperature == pytest.approx(theirs.x[0], rel=2e-3)


def test_mean_confidence_becomes_the_estimated_accuracy():
    method = transcal()
    selection = method.adapt(TARGET.logits, TARGET.features)
    assert selection.flags == ()
    assert selection.details["objective"] < 1e-4
    assert method.confidence(TARGET.logits).mean() == pytest.approx(
        selection.details["estimated_accuracy"], abs=1e-4
    )
    np.testing.assert_allclose(
        method.predict_proba(TARGET.logits), softmax(TARGET.logits / selection.temperature, axis=1)
    )


def test_the_official_reading_never_sharpens_and_the_free_one_can():
    official = transcal().adapt(SHY.logits, SHY.features)
    free = transcal(reading="free").adapt(SHY.logits, SHY.features)
    assert official.temperature == pytest.approx(1.0)
    assert official.has("gap-open")
    assert free.temperature < 0.9
    assert not free.has("gap-open")


def test_a_target_like_source_train_asks_for_the_sources_confidence():
    selection = transcal().adapt(TARGET.logits, TRAIN.features)
    assert selection.details["mean_weight"] == pytest.approx(1.0)
    # Equal weights: the errors' control variate replaces accuracy by calibrated confidence.
    assert selection.details["estimated_accuracy"] == pytest.approx(
        selection.details["source_confidence"], abs=1e-6
    )


def test_a_source_of_errors_only_flattens_and_says_so():
    wrong = CALIBRATION.rows(CALIBRATION.logits.argmax(axis=1) != CALIBRATION.labels)
    method = transcal(bank_of(wrong))
    selection = method.adapt(TARGET.logits, TARGET.features)
    assert selection.details["estimated_accuracy"] == pytest.approx(0.0, abs=1e-9)
    assert selection.temperature > 100
    assert selection.has("gap-open")
    assert np.isfinite(method.predict_proba(TARGET.logits)).all()


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_the_original_reading_has_its_published_weights(spread):
    calibration = CALIBRATION._replace(features=spread * CALIBRATION.features)
    model = ImportanceWeights().fit(TRAIN.features, TARGET.features + 1.0)
    p_source = 1 / (1 + np.exp(model.log_weights(calibration.features)))
    weights = 1 / np.maximum(p_source, 1 / 1001) - 0.5
    method = CPCS(reading="original").fit(bank_of(calibration), source_features=TRAIN.features)
    selection = method.adapt(TARGET.logits, TARGET.features + 1.0)
    expected = searched_temperature(calibration, weights)
    assert selection.temperature == pytest.approx(expected, rel=1e-5)
    assert selection.details["largest_weight"] == pytest.approx(weights.max())
