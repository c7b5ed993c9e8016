"""TransCal: against the published steps, its two readings, and the corners of its equation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from shifted_data import bank_of, draw_domain
from sklearn.linear_model import LogisticRegression

from shiftcal import ImportanceWeights, TransCal
from shiftcal.errors import FitWarning, InputError, UnknownName

TRAIN = draw_domain(1500, 0.0, seed=31)
CALIBRATION = draw_domain(1000, 0.0, seed=32)
TARGET = draw_domain(1500, 1.0, seed=33)
# Logits a third of what they should be: the model is under-confident.
SHY = draw_domain(1500, 0.3, seed=34, log_t=-1.1)
BANK = bank_of(CALIBRATION)


def fitted(bank=BANK, **settings):
    return TransCal(**settings).fit(bank, source_features=TRAIN.features)


def confidence_at(logits, temperature):
    return softmax(logits / temperature, axis=1).max(axis=1).mean()


def published(train, calibration, target, *, lower=1.0, variance=True, bias=True):
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
        w = weight ** x[1] if bias else weight
        a = w * error
        risk = a.mean()
        if variance:
            eta_1 = -np.cov(a, w)[0, 1] / np.var(w, ddof=1)
            right = 1 - error
            eta_2 = -np.cov(a + eta_1 * (w - 1), right)[0, 1] / np.var(right, ddof=1)
            risk += eta_1 * (w.mean() - 1) + eta_2 * (right.mean() - source_confidence)
        return abs(confidence_at(target.logits, x[0]) - (1 - risk))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # 0/0 at exponent zero
        return minimize(
            objective, np.array([2.0, 0.5]), method="SLSQP", bounds=((lower, None), (0.0, 1.0))
        )


@pytest.mark.parametrize("terms", [(True, True), (True, False), (False, True), (False, False)])
def test_the_temperature_is_that_of_the_published_steps(terms):
    bias, variance = terms
    theirs = published(TRAIN, CALIBRATION, TARGET, bias=bias, variance=variance)
    selection = fitted(bias=bias, variance=variance).adapt(TARGET.logits, TARGET.features)
    # The regression stops at a gradient of 1e-4, the search at a change of 1e-6.
    assert selection.temperature == pytest.approx(theirs.x[0], rel=2e-3)
    assert selection.details["lambda"] == pytest.approx(theirs.x[1] if bias else 1.0, abs=2e-3)
    assert selection.details["objective"] == pytest.approx(theirs.fun, abs=1e-4)


def test_the_free_reading_is_the_published_one_without_its_bound():
    theirs = published(TRAIN, CALIBRATION, SHY, lower=0.01)
    selection = fitted(reading="free").adapt(SHY.logits, SHY.features)
    assert selection.temperature == pytest.approx(theirs.x[0], rel=2e-3)


def test_mean_confidence_becomes_the_estimated_accuracy():
    method = fitted()
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
    official = fitted().adapt(SHY.logits, SHY.features)
    free = fitted(reading="free").adapt(SHY.logits, SHY.features)
    assert official.temperature == pytest.approx(1.0)
    assert official.has("gap-open")
    assert free.temperature < 0.9
    assert not free.has("gap-open")


def test_a_target_like_source_train_asks_for_the_sources_confidence():
    selection = fitted().adapt(TARGET.logits, TRAIN.features)
    assert selection.details["mean_weight"] == pytest.approx(1.0)
    # Equal weights: the errors' control variate replaces accuracy by calibrated confidence.
    assert selection.details["estimated_accuracy"] == pytest.approx(
        selection.details["source_confidence"], abs=1e-6
    )


def test_a_source_without_errors_pins_the_official_temperature_to_one():
    right = CALIBRATION.rows(CALIBRATION.logits.argmax(axis=1) == CALIBRATION.labels)
    with pytest.warns(FitWarning):
        method = fitted(bank_of(right))
    selection = method.adapt(TARGET.logits, TARGET.features)
    assert selection.details["estimated_accuracy"] == pytest.approx(1.0)
    assert selection.temperature == pytest.approx(1.0)
    assert selection.has("gap-open")


def test_a_source_of_errors_only_flattens_and_says_so():
    wrong = CALIBRATION.rows(CALIBRATION.logits.argmax(axis=1) != CALIBRATION.labels)
    method = fitted(bank_of(wrong))
    selection = method.adapt(TARGET.logits, TARGET.features)
    assert selection.details["estimated_accuracy"] == pytest.approx(0.0, abs=1e-9)
    assert selection.temperature > 100
    assert selection.has("gap-open")
    assert np.isfinite(method.predict_proba(TARGET.logits)).all()


def test_an_estimate_outside_the_unit_interval_is_kept_and_flagged(monkeypatch):
    monkeypatch.setattr(
        ImportanceWeights, "log_weights", lambda _, features: np.full(len(features), 3.0)
    )
    selection = fitted(bias=False, variance=False).adapt(TARGET.logits, TARGET.features)
    assert selection.details["estimated_accuracy"] < 0
    assert selection.has("accuracy-estimate-outside")
    (message,) = (f.message for f in selection.flags if f.code == "accuracy-estimate-outside")
    assert "outside [0, 1]" in message


def test_every_number_of_the_choice_is_there():
    selection = fitted().adapt(TARGET.logits, TARGET.features)
    assert {
        "lambda",
        "estimated_accuracy",
        "objective",
        "source_confidence",
        "effective_sample_size",
    } <= set(selection.details)
    assert selection.n_target == 1500
    assert selection.mean_confidence == pytest.approx(confidence_at(TARGET.logits, 1.0))


def test_settings_are_checked_at_fit():
    with pytest.raises(UnknownName, match="reading must be one of 'official', 'free'"):
        fitted(reading="paper")
    with pytest.raises(InputError, match="clip must be a positive number"):
        fitted(clip=0.0)
