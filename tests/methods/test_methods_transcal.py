"""TransCal: against the published steps, its two readings, and the corners of its equation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from shifted_data import bank_of, draw_domain
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from shiftcal import ImportanceWeights, TransCal, load
from shiftcal.errors import FitWarning, InputError, NotFittedError, UnknownName
from shiftcal.methods import weighted as transcal
from shiftcal.methods.weighted import TransCalSolution

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


def test_on_this_shift_the_estimate_is_near_the_truth():
    selection = fitted().adapt(TARGET.logits, TARGET.features)
    accuracy = (TARGET.logits.argmax(axis=1) == TARGET.labels).mean()
    # Accuracy does not depend on the features here; 1,000 source rows are 0.015 exact.
    assert selection.details["estimated_accuracy"] == pytest.approx(accuracy, abs=0.05)


def test_the_official_reading_never_sharpens_and_the_free_one_can():
    official = fitted().adapt(SHY.logits, SHY.features)
    free = fitted(reading="free").adapt(SHY.logits, SHY.features)
    assert official.temperature == pytest.approx(1.0)
    assert official.has("gap-open")
    assert free.temperature < 0.9
    assert not free.has("gap-open")


def test_both_readings_agree_where_the_bound_is_not_met():
    official = fitted().adapt(TARGET.logits, TARGET.features)
    free = fitted(reading="free").adapt(TARGET.logits, TARGET.features)
    assert official.temperature > 1.05
    assert free.temperature == pytest.approx(official.temperature, rel=1e-3)


def test_a_target_like_source_train_asks_for_the_sources_confidence():
    selection = fitted().adapt(TARGET.logits, TRAIN.features)
    assert selection.details["mean_weight"] == pytest.approx(1.0)
    # Equal weights: the errors' control variate replaces accuracy by calibrated confidence.
    assert selection.details["estimated_accuracy"] == pytest.approx(
        selection.details["source_confidence"], abs=1e-6
    )


def test_weights_of_exactly_one_are_no_problem(monkeypatch):
    monkeypatch.setattr(
        ImportanceWeights, "log_weights", lambda _, features: np.zeros(len(features))
    )
    selection = fitted().adapt(TARGET.logits, TARGET.features)
    assert np.isfinite(list(selection.details.values())).all()
    assert selection.details["estimated_accuracy"] == pytest.approx(
        selection.details["source_confidence"]
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


@pytest.mark.parametrize("reading", ["official", "free"])
def test_separable_domains_are_flagged_and_give_finite_numbers(reading):
    selection = fitted(reading=reading).adapt(TARGET.logits, TARGET.features + 30.0)
    assert selection.has("domains-separable")
    assert np.isfinite([selection.temperature, *selection.details.values()]).all()


def test_a_search_that_gives_up_is_flagged(monkeypatch):
    rng = np.random.default_rng(1)
    extreme = 200 * rng.standard_normal(1000).clip(-1, 1)
    monkeypatch.setattr(ImportanceWeights, "log_weights", lambda *_: extreme)
    selection = fitted().adapt(TARGET.logits, TARGET.features)
    assert selection.has("search-not-converged")
    assert selection.has("gap-open")


@pytest.mark.parametrize(("gap", "flagged"), [(0.0009, False), (0.0011, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_gap_is_open_from_a_thousandth_on(monkeypatch, gap, flagged, sign):
    found = TransCalSolution(1.5, 0.5, 0.8, 0.8 + sign * gap, True, "")
    monkeypatch.setattr(transcal, "solve_transcal", lambda *_, **__: found)
    selection = fitted().adapt(TARGET.logits, TARGET.features)
    assert [f.code for f in selection.flags] == (["gap-open"] if flagged else [])


def test_clip_bounds_the_weights():
    selection = fitted(clip=2.0).adapt(TARGET.logits, TARGET.features)
    assert selection.details["largest_weight"] == pytest.approx(2.0)
    assert selection.details["share_clipped"] > 0


def test_the_order_of_target_rows_does_not_matter_when_nothing_is_drawn():
    shuffled = TARGET.rows(np.random.default_rng(5).permutation(1500))
    method = fitted()
    first = method.adapt(TARGET.logits, TARGET.features).temperature
    second = method.adapt(shuffled.logits, shuffled.features).temperature
    # Rounding of the sums enters the slopes that steer the search.
    assert second == pytest.approx(first, rel=1e-3)


def test_the_seed_fixes_what_is_drawn():
    few = TARGET.rows(slice(0, 300))
    first, again, other = (
        fitted(seed=seed).adapt(few.logits, few.features).temperature for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


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


def test_what_is_missing_is_named_with_the_three_sets():
    three = r"source-train .* calibration .* target"
    with pytest.raises(InputError, match=three):
        TransCal().fit(BANK)
    with pytest.raises(InputError, match=three):
        fitted().adapt(TARGET.logits)


def test_features_of_another_layer_are_refused_as_soon_as_they_are_seen():
    with pytest.raises(InputError, match=r"features of the bank must have 2 columns.*got 3"):
        TransCal().fit(BANK, source_features=TRAIN.features[:, :2])
    with pytest.raises(InputError, match=r"target_features must have 3 columns.*got 2"):
        fitted().adapt(TARGET.logits, TARGET.features[:, :2])


def test_settings_are_checked_at_fit():
    with pytest.raises(UnknownName, match="reading must be one of 'official', 'free'"):
        fitted(reading="paper")
    with pytest.raises(InputError, match="clip must be a positive number"):
        fitted(clip=0.0)


def test_a_target_has_to_be_seen_first():
    with pytest.raises(NotFittedError, match="call adapt"):
        fitted().predict_proba(TARGET.logits)


def test_saved_and_loaded_it_predicts_and_adapts_the_same(tmp_path):
    method = fitted(reading="free", variance=False, seed=4)
    method.adapt(TARGET.logits, TARGET.features)
    method.save(tmp_path / "transcal.json")
    again = load(tmp_path / "transcal.json")
    np.testing.assert_array_equal(
        again.predict_proba(TARGET.logits), method.predict_proba(TARGET.logits)
    )
    few = TARGET.rows(slice(0, 500))
    assert again.adapt(few.logits, few.features) == method.adapt(few.logits, few.features)


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


def test_clone_keeps_every_setting():
    settings = {
        "reading": "free",
        "bias": False,
        "variance": False,
        "clip": 5.0,
        "standardize": True,
        "max_iter": 9,
        "seed": 3,
        "repeats": 2,
        "input": "logits",
    }
    assert clone(TransCal(**settings)).get_params() == settings
