"""The scikit-learn classifier: scikit-learn's own checks, and what they do not know."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from map_data import quiet_fit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from shiftcal import Scores, SurrogateBank, ece, maps, methods
from shiftcal.errors import FitWarning, InputError, InputWarning, NotFittedError, UnknownName
from shiftcal.export import CalibratedClassifier

# Banks of one set are meant here.
pytestmark = pytest.mark.filterwarnings("ignore:.* was fitted on one set")

NAMES = np.array(["nought", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])

BATCHES = CalibratedClassifier(
    RidgeClassifier(), "sac", corruption="noise", severities=[1, 3], adapt_to="batch"
)
BY_BATCH = {"check_methods_subset_invariance": "adapt_to='batch' looks at the rows of a batch"}


@parametrize_with_checks(
    [
        CalibratedClassifier(RidgeClassifier()),
        CalibratedClassifier(
            DecisionTreeClassifier(random_state=0),
            maps.Beta(input="probabilities"),
            scores="predict_proba",
        ),
        BATCHES,
        CalibratedClassifier(RidgeClassifier(), "sts", corruption="noise", severities=3, cv=2),
    ],
    expected_failed_checks=lambda estimator: BY_BATCH if estimator is BATCHES else {},
)
@pytest.mark.filterwarnings("ignore::shiftcal.errors.InputWarning")  # of small batches
@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")  # of tiny and of perfect sets
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    """Rows to train on, to calibrate on and to judge by."""
    x, y = load_digits(return_X_y=True)
    x = x / 16
    x_train, x_rest, y_train, y_rest = train_test_split(x, NAMES[y], test_size=0.6, random_state=0)
    x_cal, x_test, y_cal, y_test = train_test_split(x_rest, y_rest, test_size=0.5, random_state=0)
    return (x_train, y_train), (x_cal, y_cal), (x_test, y_test)


@pytest.fixture(scope="module")
def trained(digits):
    """An over-fitted, over-confident classifier."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=1000, max_iter=3000)).fit(
        *digits[0]
    )


@pytest.fixture(scope="module")
def forest(digits):
    return RandomForestClassifier(n_estimators=30, random_state=0).fit(*digits[0])


def labels_of(classifier, y):
    return np.searchsorted(classifier.classes_, y)


def test_a_fitted_classifier_is_calibrated_on_other_rows(trained, digits):
    _, cal, (x, _) = digits
    made = CalibratedClassifier(trained).fit(*cal)
    assert made.estimator_ is trained
    fitted = methods.get("ts")().fit(trained.decision_function(cal[0]), labels_of(trained, cal[1]))
    wanted = fitted.predict_proba(trained.decision_function(x))
    np.testing.assert_array_equal(made.predict_proba(x), wanted)
    np.testing.assert_array_equal(made.classes_, trained.classes_)
    assert made.classes_.dtype.kind == "U"


def test_it_gives_what_scikit_learns_own_temperature_scaling_gives(trained, digits):
    frozen = pytest.importorskip("sklearn.frozen")
    _, cal, (x, _) = digits
    theirs = CalibratedClassifierCV(
        frozen.FrozenEstimator(trained), method="temperature", ensemble=False
    ).fit(*cal)
    ours = CalibratedClassifier(trained).fit(*cal)
    # They stop their search for the temperature sooner.
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-3)


def adapted(trained, digits, **settings):
    """A method fitted on a bank of noisy rows, and adapted."""
    _, (x, y), (target, _) = digits
    rng = np.random.default_rng(0)
    noisy = [x + spread / 16 * rng.standard_normal(x.shape) for spread in (0, 2, 5)]
    sets = [trained.decision_function(rows) for rows in noisy]
    method = quiet_fit(
        methods.get("sac")(**settings), SurrogateBank.from_arrays(sets, labels_of(trained, y))
    )
    target = target + 0.25 * rng.standard_normal(target.shape)
    return method, target


def test_it_adapts_to_a_target_and_leaves_the_method_as_it_was(trained, digits):
    method, target = adapted(trained, digits)
    made = CalibratedClassifier(trained, method)
    with pytest.raises(NotFittedError, match=r"sac has not seen a target yet; call adapt\(X\)"):
        made.predict_proba(target)
    chosen = made.adapt(target)
    assert chosen.index > 0
    assert method.selection_ is None
    assert made.calibration is method
    assert made.calibration_.selection_ == chosen
    easier = made.adapt(digits[2][0])
    assert easier.index == 0
    wanted = made.calibration_.predict_proba(trained.decision_function(target))
    np.testing.assert_array_equal(made.predict_proba(target), wanted)


@pytest.mark.filterwarnings("ignore:.* on one set:shiftcal.errors.FitWarning")
@pytest.mark.parametrize("name", [n for n in methods.names() if methods.get(n).uses_bank])
def test_a_method_of_a_bank_that_is_fitted_on_rows_alone_warns(name, trained, digits):
    fitted = CalibratedClassifier(trained, name)
    with pytest.warns(FitWarning, match=rf"{name} learns from .* a bank.*from_inputs") as notes:
        fitted.fit(*digits[1])
    assert notes[0].filename == __file__


def test_a_classifier_of_probabilities_is_calibrated_by_their_logarithms(forest, digits):
    _, cal, (x, _) = digits
    made = CalibratedClassifier(forest).fit(*cal)
    scores = Scores(forest.predict_proba(x), input="probabilities")
    wanted = made.calibration_.predict_proba(scores)
    np.testing.assert_array_equal(made.predict_proba(x), wanted)
    same = CalibratedClassifier(forest, methods.get("ts")(input="probabilities")).fit(*cal)
    np.testing.assert_allclose(same.predict_proba(x), wanted, atol=1e-9)


def test_a_classifier_that_is_not_fitted_is_fitted_on_a_part(digits):
    train, _, (x, y) = digits
    inner = LogisticRegression(C=1000, max_iter=3000)
    made = CalibratedClassifier(inner, seed=3, holdout=0.3).fit(*train)
    assert not hasattr(inner, "classes_")
    assert made.score(x, y) > 0.9
    again = CalibratedClassifier(inner, seed=3, holdout=0.3).fit(*train)
    np.testing.assert_array_equal(made.predict_proba(x), again.predict_proba(x))
    other = CalibratedClassifier(inner, seed=4, holdout=0.3).fit(*train)
    assert np.abs(made.predict_proba(x) - other.predict_proba(x)).max() > 0


def test_clones_keep_what_was_fitted_and_do_not_share_it(trained, digits):
    method, target = adapted(trained, digits)
    method.adapt(trained.decision_function(target))
    made = CalibratedClassifier(trained, method, scores="decision_function")
    copy = clone(made)
    np.testing.assert_array_equal(copy.predict_proba(target), made.predict_proba(target))
    assert copy.estimator is not trained
    assert copy.calibration is not method
    assert copy.scores == "decision_function"
    copy.set_params(estimator__logisticregression__C=1)
    assert trained.get_params()["logisticregression__C"] == 1000


def test_a_grid_search_finds_the_calibration(trained, digits):
    _, cal, (x, _) = digits
    choices = {"calibration": ["vanilla", "ts", maps.Vector()]}
    search = GridSearchCV(CalibratedClassifier(trained), choices, scoring="neg_log_loss", cv=3)
    search.fit(*cal)
    scores = dict(zip(("vanilla", "ts"), search.cv_results_["mean_test_score"], strict=False))
    assert scores["ts"] > scores["vanilla"]
    assert search.predict_proba(x).shape == (len(x), 10)


def test_classes_of_the_method_in_another_order_raise(trained, digits):
    z, y = trained.decision_function(digits[1][0]), labels_of(trained, digits[1][1])
    names = tuple(trained.classes_)
    turned = SurrogateBank.from_arrays([z], y, classes=names[::-1])
    with pytest.raises(InputError, match=r"column 0 is 'eight' here and 'two' there"):
        CalibratedClassifier(trained, methods.get("ts")().fit(turned)).predict_proba(digits[2][0])
    others = SurrogateBank.from_arrays([z], y, classes=tuple("abcdefghij"))
    CalibratedClassifier(trained, methods.get("ts")().fit(others)).predict_proba(digits[2][0])


def shifted(x, seed=5):
    """Rows in which cells are lost, which no bank below has seen."""
    return np.where(np.random.default_rng(seed).random(x.shape) < 0.4, 0.0, x)


def ece_of(fitted, x, y):
    probs = fitted.predict_proba(x)
    return ece(probs.max(axis=1), fitted.classes_[probs.argmax(axis=1)] == y)


def test_it_builds_its_bank_and_adapts_to_each_batch(digits):
    (x, y), _, (target, truth) = digits
    inner = LogisticRegression(C=1000, max_iter=3000)
    made = CalibratedClassifier(inner, "rehearsal", corruption=["noise", "drift"], seed=1)
    made.fit(x, y)
    assert len(made.bank_) == 11
    assert len(made.bank_.clean) + len(made.estimator_.coef_) < len(x)
    with pytest.raises(NotFittedError, match=r'call adapt.* or set adapt_to="batch"'):
        made.predict_proba(target)
    batches = clone(made).set_params(adapt_to="batch").fit(x, y)
    for rows in (target, shifted(target)):
        made.adapt(rows)
        np.testing.assert_array_equal(batches.predict_proba(rows), made.predict_proba(rows))
        assert batches.calibration_.selection_ is None  # predicting changes nothing
    plain = CalibratedClassifier(inner, "ts", seed=1).fit(x, y)
    rows = shifted(target)
    assert ece_of(batches, rows, truth) < 0.6 * ece_of(plain, rows, truth)
    with pytest.warns(InputWarning, match=r"adapted to this batch: with 5 target rows") as notes:
        batches.predict_proba(target[:5])
    assert notes[0].filename == __file__


@pytest.mark.parametrize("cv", [3, StratifiedKFold(3)])
def test_with_cv_every_row_is_scored_by_a_classifier_that_has_not_seen_it(cv, digits):
    x, y = digits[1]
    inner = RidgeClassifier()
    made = CalibratedClassifier(inner, "sts", corruption="noise", severities=2, cv=cv).fit(x, y)
    order = np.concatenate([held for _, held in StratifiedKFold(3).split(x, y)])
    wanted = cross_val_predict(inner, x, y, cv=3, method="decision_function")[order]
    np.testing.assert_array_equal(made.bank_.clean.logits, wanted)
    np.testing.assert_array_equal(made.classes_[made.bank_[1].labels], y[order])
    np.testing.assert_array_equal(made.estimator_.coef_, clone(inner).fit(x, y).coef_)


def people(n=400, seed=0):
    """A DataFrame of numbers, text and missing cells, and the names of classes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "age": 40 + 12 * kind + rng.normal(0, 8, n),
            "pressure": rng.normal(130, 15, n) - 10 * (kind == 2),
            "ward": np.where(rng.random(n) < 0.6, np.array(["A", "B", "C"])[kind], "D"),
        }
    )
    frame.loc[rng.random(n) < 0.1, "pressure"] = np.nan
    return frame, np.array(["low", "middle", "high"])[kind]


def test_frames_and_string_labels_go_through_pipelines_cross_validation_and_searches():
    frame, y = people()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, ["age", "pressure"]), (OneHotEncoder(handle_unknown="ignore"), ["ward"])
    )
    inner = make_pipeline(columns, LogisticRegression())
    made = CalibratedClassifier(
        inner, "sac", corruption=["noise", "missing_values", "category_swaps"], adapt_to="batch"
    )
    losses = -cross_val_score(made, frame, y, scoring="neg_log_loss", cv=3)
    assert losses.shape == (3,)
    assert (losses < np.log(3)).all()
    grid = {"calibration": ["ts", "sac"], "estimator__logisticregression__C": [0.01, 1.0]}
    search = GridSearchCV(made, grid, scoring="neg_log_loss", cv=2).fit(frame, y)
    assert search.best_params_["estimator__logisticregression__C"] == 1.0
    assert list(search.classes_) == ["high", "low", "middle"]
    assert set(search.predict(frame)) == {"high", "low", "middle"}
    best = search.best_estimator_
    assert list(best.feature_names_in_) == ["age", "pressure", "ward"]
    # At the end of a pipeline it corrupts what it is given there.
    last = make_pipeline(
        columns, CalibratedClassifier(LogisticRegression(), "sts", corruption="drift")
    )
    assert last.fit(frame, y).score(frame, y) > 0.6


def test_texts_are_corrupted_as_texts():
    words = {"billing": "invoice refund payment card", "delivery": "parcel courier box address"}
    rng = np.random.default_rng(0)
    y = rng.choice(list(words), 200)
    texts = [" ".join(rng.choice(words[name].split(), 3)) for name in y]
    y[:30] = "delivery"  # some are wrong, or nothing could be calibrated
    inner = make_pipeline(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 2)), LogisticRegression()
    )
    made = CalibratedClassifier(inner, "sts", corruption="typos", severities=[1, 5]).fit(texts, y)
    assert [one.name for one in made.bank_] == ["clean", "typos, severity 1", "typos, severity 5"]
    assert made.predict(["my invoyce"]) == ["billing"]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"calibration": "tss"}, UnknownName, "called 'tss'. Did you mean 'ts'"),
        ({"calibration": 3}, InputError, "must be a method or a map.*got int"),
        ({"scores": "logits"}, InputError, "scores must be"),
        ({"holdout": 1.0}, InputError, "holdout must"),
        ({"seed": -1}, InputError, "seed must"),
        ({"adapt_to": "rows"}, InputError, "adapt_to must be"),
        ({"calibration": "sts", "corruption": "fogg"}, UnknownName, "called 'fogg'"),
        ({"calibration": "sts", "corruption": "noise", "severities": 6}, InputError, "severity"),
        ({"cv": 1000}, ValueError, "n_splits=1000"),
        (
            {"cv": [(np.arange(5), np.arange(5, 700))]},
            InputError,
            "cv must leave rows of every class",
        ),
    ],
)
def test_settings_that_mean_nothing_raise(settings, error, message, digits):
    made = CalibratedClassifier(LogisticRegression(max_iter=10), **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten steps are few
        with pytest.raises(error, match=message):
            made.fit(*digits[0])
    assert not hasattr(made, "calibration_")


@pytest.mark.parametrize(
    ("estimator", "x", "y", "message"),
    [
        (DecisionTreeClassifier(), np.eye(20), np.zeros(20), "must know two classes at least"),
        (LogisticRegression(), np.eye(3), ["a", "b", "c"], r"at least two rows.*n_samples=3"),
        (LogisticRegression(), np.eye(20), [0.0, 1.0, np.nan, 0.0] * 5, "y contains"),
        (LogisticRegression().fit(np.eye(2), [0, 1]), np.eye(2), [0, 2], "y must hold classes"),
    ],
)
def test_rows_that_cannot_be_used_raise(estimator, x, y, message):
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(estimator).fit(x, y)
