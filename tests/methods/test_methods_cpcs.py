"""CPCS: its identities, its two readings, and a shift whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from shifted_data import bank_of, draw_domain
from sklearn.linear_model import LogisticRegression

from shiftcal import CPCS, ImportanceWeights, maps
from shiftcal.errors import InputError, UnknownName

TRAIN = draw_domain(3000, 0.0, seed=21)
CALIBRATION = draw_domain(2000, 0.0, seed=22)
TARGET = draw_domain(3000, 1.0, seed=23)
BANK = bank_of(CALIBRATION)


def fitted(**settings):
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


@pytest.mark.parametrize("reading", ["transcal-port", "original"])
def test_a_target_like_source_train_has_unit_weights_and_equals_brier_temperature(reading):
    method = fitted(reading=reading)
    selection = method.adapt(TARGET.logits, TRAIN.features)
    expected = {"transcal-port": 1.0, "original": 1.5}[reading]
    assert selection.details["mean_weight"] == pytest.approx(expected)
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
    temperature = fitted().adapt(TARGET.logits, TARGET.features).temperature
    # The regression stops at a gradient of 1e-4.
    assert temperature == pytest.approx(
        searched_temperature(CALIBRATION, p[:, 0] / p[:, 1]), rel=1e-4
    )


@pytest.mark.parametrize(("spread", "beyond"), [(1.0, False), (3.0, True)])
def test_the_original_reading_has_its_published_weights(spread, beyond):
    calibration = CALIBRATION._replace(features=spread * CALIBRATION.features)
    model = ImportanceWeights().fit(TRAIN.features, TARGET.features + 1.0)
    p_source = 1 / (1 + model.weights(calibration.features))
    weights = 1 / np.maximum(p_source, 1 / 1001) - 0.5
    method = CPCS(reading="original").fit(bank_of(calibration), source_features=TRAIN.features)
    selection = method.adapt(TARGET.logits, TARGET.features + 1.0)
    assert selection.temperature == pytest.approx(
        searched_temperature(calibration, weights), rel=1e-5
    )
    assert selection.details["largest_weight"] == pytest.approx(weights.max())
    assert selection.details["share_clipped"] == pytest.approx((p_source < 1 / 1001).mean())
    assert (selection.details["share_clipped"] > 0) == beyond


@pytest.mark.parametrize("reading", ["transcal-port", "original"])
@pytest.mark.parametrize("shift", [-1.0, 1.0])
def test_the_temperature_moves_from_the_sources_towards_the_targets(reading, shift):
    target = draw_domain(3000, shift, seed=25)
    source_t, target_t = brier_temperature(CALIBRATION), brier_temperature(target)
    found = fitted(reading=reading).adapt(target.logits, target.features).temperature
    # The original's + 1/2 pulls towards the source; the port gets most of the way.
    share = {"transcal-port": (0.6, 1.4), "original": (0.3, 1.0)}[reading]
    assert share[0] < np.log(found / source_t) / np.log(target_t / source_t) < share[1]


def test_separable_domains_are_flagged_and_give_a_finite_temperature():
    far = TARGET.features + 30.0
    selection = fitted().adapt(TARGET.logits, far)
    assert selection.has("domains-separable")
    assert 0.01 <= selection.temperature <= 100
    assert "domains-separable" in str(selection)


def test_a_mild_shift_has_no_flags_and_all_its_numbers():
    selection = fitted().adapt(TARGET.logits, TARGET.features)
    assert selection.flags == ()
    assert selection.n_target == 3000
    assert selection.mean_confidence == pytest.approx(softmax(TARGET.logits, axis=1).max(1).mean())
    assert set(selection.details) == {
        "effective_sample_size",
        "mean_weight",
        "largest_weight",
        "share_clipped",
        "domain_auc",
    }
    assert 100 < selection.details["effective_sample_size"] < 2000


def test_what_is_missing_is_named_with_the_three_sets():
    three = r"source-train .* calibration .* target"
    with pytest.raises(InputError, match=three):
        CPCS().fit(BANK)
    with pytest.raises(InputError, match=three):
        CPCS().fit(CALIBRATION.logits, CALIBRATION.labels, source_features=TRAIN.features)
    with pytest.raises(InputError, match=three):
        fitted().adapt(TARGET.logits)


def test_features_of_another_layer_are_refused_as_soon_as_they_are_seen():
    with pytest.raises(InputError, match=r"features of the bank must have 2 columns.*got 3"):
        CPCS().fit(BANK, source_features=TRAIN.features[:, :2])
    with pytest.raises(InputError, match=r"target_features must have 3 columns.*got 2"):
        fitted().adapt(TARGET.logits, TARGET.features[:, :2])


def test_settings_are_checked_at_fit():
    with pytest.raises(UnknownName, match="reading must be one of 'transcal-port', 'original'"):
        fitted(reading="orginal")
    with pytest.raises(InputError, match="clip must be a positive number"):
        fitted(clip=-1.0)
    with pytest.raises(InputError, match="max_iter must be a whole number"):
        fitted(max_iter=0)


def test_repeats_average_the_temperatures_of_further_seeds():
    few = TARGET.logits[:400], TARGET.features[:400]  # drawn up to the size of source-train
    alone = [fitted(seed=seed).adapt(*few) for seed in (5, 6, 7)]
    selection = fitted(seed=5, repeats=3).adapt(*few)
    temperatures = [one.temperature for one in alone]
    assert len(set(temperatures)) == 3
    assert selection.temperature == pytest.approx(np.mean(temperatures), rel=1e-12)
    sd = selection.details.pop("temperature_sd")
    assert sd == pytest.approx(np.std(temperatures, ddof=1), rel=1e-9)
    for name, value in selection.details.items():
        assert value == pytest.approx(np.mean([one.details[name] for one in alone]), rel=1e-12)
    assert {flag.code for flag in selection.flags} == {f.code for a in alone for f in a.flags}
    assert fitted(seed=5, repeats=1).adapt(*few) == alone[0]
    with pytest.raises(InputError, match="repeats must be a whole number of at least 1; got 0"):
        fitted(repeats=0)
