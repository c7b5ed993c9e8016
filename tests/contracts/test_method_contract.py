"""What every method in the folder promises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.special import softmax
from sklearn.base import clone

from shiftcal import Scores, SurrogateBank, load, methods
from shiftcal.errors import FitError, InputError, NotFittedError

RNG = np.random.default_rng(0)
N = 600


def features(n: int, shift: float, *, seed: int):
    return np.random.default_rng(seed).standard_normal((n, 5)) + shift


BANK = make_bank(N, features=features(N, 0.0, seed=1))
SOURCE = features(900, 0.0, seed=2)
TARGET, _ = draw(500, STEPS[3], seed=77)
TARGET_FEATURES = features(500, 0.4, seed=3)
MIXED_LOGITS, MIXED_LABELS = draw(400, STEPS[4], seed=78)
MIXED = Scores(MIXED_LOGITS, labels=MIXED_LABELS)


@pytest.fixture(params=methods.names())
def method(request):
    return methods.get(request.param)()


def fitted(method, bank=BANK):
    return method.fit(bank, source_features=SOURCE)


def adapted(method, bank=BANK, target=TARGET):
    fitted(method, bank).adapt(target, TARGET_FEATURES, mixed=MIXED)
    return method


def test_rows_are_probabilities(method):
    probs = adapted(method).predict_proba(TARGET)
    assert probs.shape == TARGET.shape
    assert probs.dtype == np.float64
    assert (probs >= 0).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-12)


def test_the_predicted_class_is_the_models(method):
    if method.corrects:
        pytest.skip("it corrects predictions")
    probs = adapted(method).predict_proba(TARGET)
    np.testing.assert_array_equal(probs.argmax(axis=1), TARGET.argmax(axis=1))


def test_confidence_is_the_largest_probability(method):
    if method.corrects:
        pytest.skip("its confidence is of the model's own prediction")
    method = adapted(method)
    np.testing.assert_array_equal(
        method.confidence(TARGET), method.predict_proba(TARGET).max(axis=1)
    )


def test_a_subset_of_rows_gives_the_same_rows(method):
    method = adapted(method)
    rows = RNG.permutation(len(TARGET))[:50]
    np.testing.assert_allclose(
        method.predict_proba(TARGET[rows]), method.predict_proba(TARGET)[rows], rtol=1e-13
    )


def test_the_order_of_the_target_does_not_matter(method):
    first = adapted(clone(method))
    rows = np.random.default_rng(5).permutation(len(TARGET))
    second = fitted(clone(method))
    second.adapt(TARGET[rows], TARGET_FEATURES[rows], mixed=MIXED)
    # features enter a logistic regression whose solver sees the rows in order
    np.testing.assert_allclose(
        first.predict_proba(TARGET), second.predict_proba(TARGET), rtol=0, atol=2e-2
    )
    if not method.uses_features:
        np.testing.assert_allclose(first.predict_proba(TARGET), second.predict_proba(TARGET))


def test_nothing_is_changed_in_what_was_passed(method):
    bank = make_bank(N, features=features(N, 0.0, seed=1))
    target, target_features, source = TARGET.copy(), TARGET_FEATURES.copy(), SOURCE.copy()
    before = [s.logits.copy() for s in bank]
    method.fit(bank, source_features=source).adapt(target, target_features, mixed=MIXED)
    method.predict_proba(target)
    np.testing.assert_array_equal(target, TARGET)
    np.testing.assert_array_equal(target_features, TARGET_FEATURES)
    np.testing.assert_array_equal(source, SOURCE)
    for s, logits in zip(bank, before, strict=True):
        np.testing.assert_array_equal(s.logits, logits)


def test_fit_returns_the_method_and_adapt_the_selection(method):
    assert fitted(method) is method
    assert method.selection_ is None
    selection = method.adapt(TARGET, TARGET_FEATURES, mixed=MIXED)
    assert selection is method.selection_
    assert selection.method == method.name
    assert str(selection)


def test_input_that_is_refused_leaves_the_old_fit_whole(method):
    before = adapted(method).predict_proba(TARGET)
    with pytest.raises(InputError):
        method.fit("nothing of the kind")
    np.testing.assert_array_equal(method.predict_proba(TARGET), before)


def test_a_fit_that_fails_on_the_way_leaves_it_unfitted(method, monkeypatch):
    adapted(method)

    def fail(*_):
        raise FitError("on the way")

    monkeypatch.setattr(type(method), "_fit", fail)
    with pytest.raises(FitError):
        fitted(method)
    with pytest.raises(NotFittedError):
        method.predict_proba(TARGET)


def test_an_unfitted_method_says_so(method):
    with pytest.raises(NotFittedError, match="call fit"):
        method.predict_proba(TARGET)
    with pytest.raises(NotFittedError, match="call fit"):
        method.save("never-written.json")


def test_clone_and_parameters_follow_scikit_learn(method):
    parameters = method.get_params(deep=False)
    assert clone(method).get_params(deep=False) == parameters
    assert type(method)(**parameters).get_params(deep=False) == parameters


def test_fitted_attributes_are_those_declared(method):
    adapted(method)
    found = {name for name in vars(method) if name.endswith("_")}
    assert found == set(method.fitted_attributes())


@pytest.mark.parametrize("also_adapt", [False, True])
def test_saved_and_loaded_it_gives_the_same_rows(method, also_adapt, tmp_path):
    fitted(method)
    if also_adapt:
        method.adapt(TARGET, TARGET_FEATURES, mixed=MIXED)
    path = tmp_path / "method.json"
    method.save(path)
    again = load(path)
    assert type(again) is type(method)
    assert again.get_params(deep=False) == method.get_params(deep=False)
    assert again.selection_ == method.selection_
    if not also_adapt:
        assert again.adapt(TARGET, TARGET_FEATURES, mixed=MIXED) == method.adapt(
            TARGET, TARGET_FEATURES, mixed=MIXED
        )
    np.testing.assert_array_equal(again.predict_proba(TARGET), method.predict_proba(TARGET))


def test_a_pickle_gives_the_same_rows(method):
    adapted(method)
    again = pickle.loads(pickle.dumps(method))
    np.testing.assert_array_equal(again.predict_proba(TARGET), method.predict_proba(TARGET))


def test_probabilities_with_their_kind_said_equal_logits(method):
    logits = adapted(clone(method)).predict_proba(TARGET)
    bank = SurrogateBank.from_arrays(
        [softmax(s.logits, axis=1) for s in BANK],
        BANK.clean.labels,
        features=BANK.clean.features,
        corruption="fading",
        input="probabilities",
    )
    probs_in = softmax(TARGET, axis=1)
    by_probs = adapted(method.set_params(input="probabilities"), bank, probs_in)
    # What a gate learns by iterations differs in the fifth digit.
    atol = 1e-4 if method.corrects else 1e-6
    np.testing.assert_allclose(by_probs.predict_proba(probs_in), logits, atol=atol)


def test_a_bank_of_another_kind_is_refused(method):
    bank = SurrogateBank.from_arrays(
        [softmax(BANK.clean.logits, axis=1)], BANK.clean.labels, input="probabilities"
    )
    with pytest.raises(InputError, match='input="probabilities"'):
        method.fit(bank, source_features=SOURCE)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (TARGET[:0], "this set is empty"),
        (TARGET[:, :3], "must have 6 columns"),
        (TARGET[:, 0], r"shape \(n, k\)"),
        (np.where(TARGET[7, 2] == TARGET, np.nan, TARGET), "row 7 holds nan"),
        (np.where(TARGET[7, 2] == TARGET, np.inf, TARGET), "row 7 holds inf"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused(method, target, words):
    adapted(method)
    before = method.selection_
    with pytest.raises(InputError, match=words):
        method.adapt(target, TARGET_FEATURES[: len(target)], mixed=MIXED)
    assert method.selection_ is before


@pytest.mark.filterwarnings("ignore:.* was fitted on one set")
def test_logits_and_labels_make_a_bank_of_one_set(method):
    if method.uses_features:
        with pytest.raises(InputError, match="features of the bank's first set"):
            method.fit(BANK.clean.logits, BANK.clean.labels, source_features=SOURCE)
        return
    alone = method.fit(BANK.clean.logits, BANK.clean.labels)
    alone.adapt(TARGET, mixed=MIXED)
    expected = clone(method).fit(SurrogateBank([BANK.clean]))
    expected.adapt(TARGET, mixed=MIXED)
    np.testing.assert_array_equal(alone.predict_proba(TARGET), expected.predict_proba(TARGET))


def test_a_one_row_target_works(method):
    fitted(method)
    method.adapt(TARGET[:1], TARGET_FEATURES[:1], mixed=MIXED)
    assert method.predict_proba(TARGET[:1]).shape == (1, TARGET.shape[1])


def test_mixed_images_are_asked_for_by_the_methods_that_need_them_and_by_no_other(method):
    fitted(method)
    if not method.uses_mixed:
        expected = method.adapt(TARGET, TARGET_FEATURES)
        assert method.adapt(TARGET, TARGET_FEATURES, mixed=MIXED) == expected
        return
    for wrong in (None, MIXED.values, Scores(MIXED.values)):
        with pytest.raises(InputError, match=r"shiftcal\.scoring\.score_mixed"):
            method.adapt(TARGET, TARGET_FEATURES, mixed=wrong)
    with pytest.raises(InputError, match="must have 6 columns"):
        method.adapt(TARGET, mixed=Scores(MIXED.values[:, :3], labels=MIXED.labels % 3))
