"""A model run over rows and texts: classifiers, functions, and what goes wrong with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import shiftcal as sc
from shiftcal.errors import InputError, UnknownName
from shiftcal.scoring import score_inputs

ROWS, LABELS = load_wine(return_X_y=True)
NAMES = np.array(["barolo", "grignolino", "barbera"])[LABELS]
CLASSIFIER = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, NAMES)
BINARY = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, LABELS == 1)


def test_a_classifier_gives_its_probabilities_and_classes():
    scores = score_inputs(CLASSIFIER, ROWS)
    assert scores.input == "probabilities"
    assert scores.classes == ("barbera", "barolo", "grignolino")
    np.testing.assert_allclose(scores.values, CLASSIFIER.predict_proba(ROWS), rtol=1e-12)


def test_as_logits_it_gives_its_decision_function():
    scores = score_inputs(CLASSIFIER, ROWS, input="logits")
    np.testing.assert_array_equal(scores.values, CLASSIFIER.decision_function(ROWS))
    binary = score_inputs(BINARY, ROWS, input="logits")
    assert binary.classes == ("False", "True")
    # One column s is [0, s]: a softmax of that is what the classifier says.
    np.testing.assert_allclose(softmax(binary.values, axis=1), BINARY.predict_proba(ROWS))


def test_a_classifier_without_probabilities_gives_its_decision_function():
    scaled = StandardScaler().fit_transform(ROWS)
    scores = score_inputs(LinearSVC().fit(scaled, LABELS), scaled)
    assert scores.input == "logits"
    assert scores.k == 3


def test_a_function_gives_logits_unless_said_otherwise():
    scores = score_inputs(lambda rows: rows[:, :3], ROWS, classes=["a", "b", "c"])
    assert (scores.input, scores.classes) == ("logits", ("a", "b", "c"))
    given = score_inputs(CLASSIFIER.predict_proba, ROWS, input="probabilities")
    assert given.input == "probabilities"
    assert given.classes is None


def raising(rows):
    raise RuntimeError("no such layer")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (LogisticRegression(), r"fitted classifier; LogisticRegression has no classes_. Fit"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "Pipeline has no classes_"),
        (LinearRegression().fit(ROWS, LABELS), "LinearRegression has no classes_"),
        (LogisticRegression, "has no classes_"),
        (int, r"or a function from inputs to logits; got <class 'int'>"),
        ("model.onnx", "got 'model.onnx'"),
        (None, "got None"),
        (
            DecisionTreeClassifier().fit(ROWS, np.column_stack([LABELS, LABELS])),
            "must have one output; DecisionTreeClassifier has 2",
        ),
        (sc.models.CallableModel(raising), r"a model of images. SurrogateBank.synthesize"),
    ],
)
def test_what_is_no_model_of_inputs_is_refused(model, said):
    with pytest.raises(InputError, match=said):
        score_inputs(model, ROWS)


def test_scores_of_pairs_of_classes_are_refused():
    pairs = SVC(decision_function_shape="ovo")
    searched = GridSearchCV(make_pipeline(StandardScaler(), pairs), {"svc__C": [1.0]}, cv=2)
    for model in (pairs.fit(ROWS, NAMES), searched.fit(ROWS, NAMES)):
        with pytest.raises(InputError, match=r'one for each pair.*decision_function_shape="ovr"'):
            score_inputs(model, ROWS)


def test_a_kind_that_the_classifier_has_not_is_refused():
    forest = RandomForestClassifier(3, random_state=0).fit(ROWS, LABELS)
    with pytest.raises(InputError, match="must have decision_function; RandomForestClassifier has"):
        score_inputs(forest, ROWS, input="logits")
    with pytest.raises(UnknownName, match=r"input must be one of .* got 'scores'"):
        score_inputs(forest, ROWS, input="scores")
    labels_only = type("Odd", (), {"predict": None, "classes_": np.arange(3)})()
    with pytest.raises(InputError, match="must have predict_proba or decision_function; Odd has"):
        score_inputs(labels_only, ROWS)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (raising, "the model failed on the inputs: RuntimeError: no such layer"),
        (CLASSIFIER.predict_proba, r'these logits are probabilities.* input="probabilities"'),
        (lambda rows: rows[:5, :3], "a row for each of 178 inputs; got 5 rows"),
        (lambda rows: rows[:, 0], r"must have shape \(n, k\) with k >= 2; got shape \(178,\)"),
        (lambda rows: rows[:, :1], "column per class and at least two"),
        (lambda rows: np.full((len(rows), 3), np.nan), "must be finite; row 0 holds nan"),
        (lambda rows: np.full((len(rows), 3), np.inf), "must be finite; row 0 holds inf"),
        (CLASSIFIER.predict, "the model's output for the inputs cannot be used"),
        (lambda rows: rows.sort(), "cannot be used: logits must be an array"),
    ],
)
def test_what_a_model_gives_is_checked(model, said):
    with pytest.raises(InputError, match=said):
        score_inputs(model, ROWS)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (ROWS[:0], "one at least; got none"),
        ("one text", "got str"),
        ({"a": [1]}, "got dict"),
        (iter(ROWS), "got array_iterator|got .*iterator"),
        (5, "got int"),
    ],
)
def test_inputs_must_be_in_order_and_not_none(inputs, said):
    with pytest.raises(InputError, match=said):
        score_inputs(CLASSIFIER, inputs)
