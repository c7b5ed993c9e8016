"""What every map promises."""

from __future__ import annotations

import inspect
import pickle
import typing

import numpy as np
import pytest
from map_data import draw_logits as draw
from map_data import equal_size_ece, nll, quiet_fit, softmax
from sklearn.base import clone

from shiftcal import maps
from shiftcal.errors import FitWarning, InputError, NotFittedError
from shiftcal.maps import FitStatus
from shiftcal.persistence import ARRAY

LOGITS, LABELS = draw(900, 4, temperature=2.0, seed=1)
FRESH, _ = draw(300, 4, temperature=2.0, seed=2)
LIKELIHOOD = (
    "temperature",
    "entropy-temperature",
    "vector",
    "matrix",
    "dirichlet",
    "ensemble-temperature",
)
PRESERVING = [name for name in maps.names() if maps.get(name).preserves_accuracy]

SETS = {
    "over-confident, 2 classes": draw(400, 2, temperature=3.0, seed=11),
    "over-confident, 3 classes": draw(400, 3, temperature=3.0, seed=12),
    "over-confident, 50 classes": draw(600, 50, temperature=3.0, seed=13),
    "under-confident, 2 classes": draw(400, 2, temperature=0.3, seed=14),
    "under-confident, 3 classes": draw(400, 3, temperature=0.3, seed=15),
    "under-confident, 50 classes": draw(600, 50, temperature=0.3, seed=16),
    "hardly any signal": draw(400, 3, temperature=1.0, seed=17, spread=0.2),
    "worse than chance": (LOGITS, LOGITS.argmin(axis=1)),
}


@pytest.fixture(params=maps.names())
def unfitted(request):
    return maps.get(request.param)()


@pytest.fixture(scope="module", params=maps.names())
def fitted(request):
    return maps.get(request.param)().fit(LOGITS, LABELS)


def with_ties(logits):
    """Whole numbers: many rows alike, and many with more than one largest logit."""
    tied = np.rint(logits)
    tied[:20] = tied[:20].max(axis=1, keepdims=True)
    return tied


def test_rows_are_probabilities(fitted):
    probs = fitted.predict_proba(FRESH)
    assert probs.shape == FRESH.shape
    assert probs.dtype == np.float64
    assert (probs >= 0).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_a_constant_added_to_a_row_changes_nothing(fitted):
    shift = np.random.default_rng(3).uniform(-50, 50, (len(FRESH), 1))
    # Adding 50 costs a logit its last 1e-14; a step of isotonic regression may be 1e-4 wide.
    np.testing.assert_allclose(
        fitted.predict_proba(FRESH + shift), fitted.predict_proba(FRESH), rtol=0, atol=1e-9
    )


def test_number_and_order_of_rows_predicted_together_do_not_matter(fitted):
    rows = np.random.default_rng(5).permutation(len(FRESH))[:70]
    whole = fitted.predict_proba(FRESH)
    np.testing.assert_allclose(fitted.predict_proba(FRESH[rows]), whole[rows], rtol=0, atol=1e-13)
    np.testing.assert_allclose(fitted.predict_proba(FRESH[7:8]), whole[7:8], rtol=0, atol=1e-13)


def test_the_order_of_rows_in_the_fit_does_not_matter(fitted):
    rows = np.random.default_rng(6).permutation(len(LOGITS))
    again = clone(fitted).fit(LOGITS[rows], LABELS[rows])
    np.testing.assert_allclose(
        again.predict_proba(FRESH), fitted.predict_proba(FRESH), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("ties", [False, True])
def test_a_weight_of_two_is_a_row_given_twice(unfitted, ties):
    logits = with_ties(LOGITS) if ties else LOGITS
    weights = np.random.default_rng(7).integers(0, 4, len(logits))
    weighted = clone(unfitted).fit(logits, LABELS, sample_weight=weights)
    repeated = clone(unfitted).fit(np.repeat(logits, weights, axis=0), np.repeat(LABELS, weights))
    np.testing.assert_allclose(
        weighted.predict_proba(FRESH), repeated.predict_proba(FRESH), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("scale", [1e-6, 3.0, 1e9])
def test_the_scale_of_the_weights_does_not_matter(unfitted, scale):
    weights = np.random.default_rng(8).exponential(size=len(LOGITS))
    first = clone(unfitted).fit(LOGITS, LABELS, sample_weight=weights)
    second = clone(unfitted).fit(LOGITS, LABELS, sample_weight=scale * weights)
    np.testing.assert_allclose(
        first.predict_proba(FRESH), second.predict_proba(FRESH), rtol=0, atol=1e-6
    )


def test_nothing_is_changed_in_what_was_passed(unfitted):
    logits, labels, weights = LOGITS.copy(), LABELS.copy(), np.ones(len(LOGITS))
    for array in (logits, labels, weights):
        array.setflags(write=False)
    unfitted.fit(logits, labels, sample_weight=weights).predict_proba(logits)
    np.testing.assert_array_equal(logits, LOGITS)
    np.testing.assert_array_equal(labels, LABELS)


def test_the_same_numbers_in_single_and_double_precision_agree(unfitted):
    single = LOGITS.astype(np.float32)
    first = clone(unfitted).fit(single, LABELS).predict_proba(single)
    double = single.astype(np.float64)
    second = clone(unfitted).fit(double, LABELS).predict_proba(double)
    # temperatures of single-precision logits are good to 1e-4
    np.testing.assert_allclose(first, second, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", PRESERVING)
@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("ties", [False, True])
def test_accuracy_is_kept_where_that_is_promised(name, data, ties):
    logits, labels = SETS[data]
    logits = with_ties(logits) if ties else logits
    fitted = quiet_fit(maps.get(name)(), logits, labels)
    fresh, _ = draw(500, logits.shape[1], temperature=1.7, seed=21)
    for rows in (logits, fresh, with_ties(fresh), 20 * fresh, fresh / 50):
        probs = fitted.predict_proba(rows)
        np.testing.assert_array_equal(probs.argmax(axis=1), rows.argmax(axis=1))
        np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LIKELIHOOD)
@pytest.mark.parametrize("data", SETS)
def test_likelihood_on_the_fitting_set_is_not_worse_than_the_models(name, data):
    logits, labels = SETS[data]
    fitted = quiet_fit(maps.get(name)(), logits, labels)
    assert nll(fitted.predict_proba(logits), labels) <= nll(softmax(logits), labels) + 1e-6


@pytest.mark.parametrize("temperature", [0.4, 2.5])
def test_known_miscalibration_is_removed(unfitted, temperature):
    logits, labels = draw(5000, 6, temperature=temperature, seed=31)
    fresh, truth = draw(5000, 6, temperature=temperature, seed=32)
    before, after = softmax(fresh), unfitted.fit(logits, labels).predict_proba(fresh)
    assert equal_size_ece(before.max(axis=1), before.argmax(axis=1) == truth) > 0.1
    # about 0.015 is what 5,000 rows of a calibrated model show
    assert equal_size_ece(after.max(axis=1), after.argmax(axis=1) == truth) < 0.03


def test_a_class_that_never_occurs_is_allowed(unfitted):
    rows = LABELS != 3
    probs = unfitted.fit(LOGITS[rows], LABELS[rows]).predict_proba(FRESH)
    assert probs.shape == FRESH.shape
    assert np.isfinite(probs).all()


FEW, _ = draw(60, 3, temperature=2.0, seed=42)
ODD_SETS = {
    "one row, right": (np.array([[3.0, 1.0, 0.0]]), np.array([0])),
    "one row, wrong": (np.array([[3.0, 1.0, 0.0]]), np.array([2])),
    "two rows": (np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0]]), np.array([0, 0])),
    "all rows alike": (np.tile([2.0, 1.0, 0.5], (30, 1)), np.arange(30) % 3),
    "constant logits": (np.zeros((30, 3)) + 5.0, np.arange(30) % 3),
    "one class": (draw(60, 3, temperature=2.0, seed=41)[0], np.zeros(60, dtype=int)),
    "no mistakes": (FEW, FEW.argmax(axis=1)),
    "nothing right": (FEW, FEW.argmin(axis=1)),
    "huge logits": (1e4 * draw(60, 3, temperature=2.0, seed=44)[0], np.arange(60) % 3),
    "tiny logits": (1e-6 * draw(60, 3, temperature=2.0, seed=45)[0], np.arange(60) % 3),
}


@pytest.mark.parametrize("name", ODD_SETS)
def test_odd_sets_give_probabilities_all_the_same(unfitted, name):
    logits, labels = ODD_SETS[name]
    quiet_fit(unfitted, logits, labels)
    fresh = np.vstack([logits, [[1.0, 2.0, 3.0], [-800.0, 0.0, 800.0]]])
    probs = unfitted.predict_proba(fresh)
    assert (probs >= 0).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    if unfitted.preserves_accuracy:
        np.testing.assert_array_equal(probs.argmax(axis=1), fresh.argmax(axis=1))


@pytest.mark.parametrize("scale", [1e-6, 1e-9, 1e-13, 1e-17, 1e-300])
@pytest.mark.parametrize("name", PRESERVING)
def test_the_predicted_class_is_kept_however_little_the_logits_differ(name, scale):
    # Labels at random: the flattest map there is, which brings classes nearest to one another.
    labels = np.random.default_rng(5).integers(0, LOGITS.shape[1], len(LOGITS))
    fitted = quiet_fit(maps.get(name)(), LOGITS, labels)
    tiny = scale * LOGITS
    np.testing.assert_array_equal(fitted.predict_proba(tiny).argmax(axis=1), tiny.argmax(axis=1))


def test_an_error_free_set_is_reported(unfitted):
    with pytest.warns(FitWarning, match=r"error-free|no mistake|predicted correctly"):
        unfitted.fit(LOGITS, LOGITS.argmax(axis=1))
    assert not unfitted.status_.converged


def test_probabilities_in_place_of_logits_give_the_same_map(fitted):
    twin = clone(fitted).set_params(input="probabilities").fit(softmax(LOGITS), LABELS)
    np.testing.assert_allclose(
        twin.predict_proba(softmax(FRESH)), fitted.predict_proba(FRESH), rtol=0, atol=1e-6
    )


def test_an_unfitted_map_says_so(unfitted):
    with pytest.raises(NotFittedError, match="not fitted yet; call fit"):
        unfitted.predict_proba(FRESH)


def test_settings_follow_scikit_learn(unfitted):
    settings = unfitted.get_params()
    assert settings["input"] == "logits"
    assert clone(unfitted).get_params() == settings
    unfitted.set_params(input="probabilities")
    assert unfitted.input == "probabilities"
    for parameter in inspect.signature(type(unfitted)).parameters.values():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is not inspect.Parameter.empty


def test_a_pickle_gives_the_same_rows(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(FRESH), fitted.predict_proba(FRESH))


def test_learnt_attributes_are_those_declared_and_of_kinds_that_can_be_saved(fitted):
    declared = fitted.fitted_attributes()
    assert {name for name in vars(fitted) if name.endswith("_")} == set(declared)
    for name, hint in declared.items():
        kind = np.ndarray if typing.get_origin(hint) is ARRAY else hint
        assert kind in (float, int, str, bool, FitStatus, np.ndarray)
        assert isinstance(getattr(fitted, name), kind)


def test_a_map_is_final_and_found_by_its_name(unfitted):
    assert maps.get(unfitted.name) is type(unfitted)
    assert getattr(type(unfitted), "__final__", False)
    assert isinstance(unfitted.preserves_accuracy, bool)


WRONG = {
    "a missing value": (
        np.where(LOGITS[5, 2] == LOGITS, np.nan, LOGITS),
        LABELS,
        "row 5 holds nan",
    ),
    "no rows": (LOGITS[:0], LABELS[:0], "at least one row"),
    "one column": (LOGITS[:, :1], LABELS, "k >= 2"),
    "one dimension": (LOGITS[:, 0], LABELS, "shape \\(n, k\\)"),
    "probabilities": (softmax(LOGITS), LABELS, 'Say input="probabilities"'),
    "labels from 1": (LOGITS, LABELS + 1, "pass labels - 1"),
    "too few labels": (LOGITS, LABELS[:-1], "900 rows, 899 labels"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_used_is_refused(unfitted, name):
    logits, labels, words = WRONG[name]
    with pytest.raises(InputError, match=words):
        unfitted.fit(logits, labels)
