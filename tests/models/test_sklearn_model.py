"""scikit-learn classifiers as models, on its own digits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from shiftcal.errors import InputError, UnknownName
from shiftcal.models import SklearnModel, as_model

DIGITS = load_digits()
IMAGES = (DIGITS.images * 15).astype(np.uint8)[:600]  # (n, 8, 8), grey
LABELS = DIGITS.target[:600]
ROWS = np.repeat(IMAGES[..., None], 3, axis=3).reshape(600, -1).astype(np.float32) / np.float32(255)


def one_channel(batch):
    return batch[..., 0].reshape(len(batch), -1)


def test_logistic_regression_gives_its_decision_function_on_flattened_pixels():
    fitted = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(ROWS, LABELS)
    model = as_model(fitted, batch_size=128)
    assert isinstance(model, SklearnModel)
    assert model.scores == "decision_function"
    assert model.classes == tuple("0123456789")
    z = model.logits(IMAGES)
    np.testing.assert_allclose(softmax(z, axis=1), fitted.predict_proba(ROWS), atol=1e-5)


def test_probabilities_become_logits_where_there_is_no_decision_function():
    fitted = GaussianNB(var_smoothing=0.1).fit(one_channel(ROWS.reshape(-1, 8, 8, 3)), LABELS)
    model = SklearnModel(fitted, features=one_channel)
    assert model.scores == "predict_proba"
    z = model.logits(IMAGES)
    wanted = fitted.predict_proba(one_channel(ROWS.reshape(-1, 8, 8, 3)))
    np.testing.assert_allclose(np.exp(z), wanted, atol=1e-5)  # float32 rows that sum to about 1


def test_two_classes_get_two_columns():
    two = LABELS < 2
    fitted = LogisticRegression().fit(ROWS[two], LABELS[two])
    z = as_model(fitted).logits(IMAGES[two])
    np.testing.assert_allclose(softmax(z, axis=1), fitted.predict_proba(ROWS[two]), atol=1e-6)


def test_one_against_one_scores_are_refused_since_they_are_no_classes():
    three = LABELS < 3  # and three pairs of them, so that counting columns does not tell
    for rows in (slice(200), three):
        fitted = SVC(decision_function_shape="ovo").fit(ROWS[rows], LABELS[rows])
        with pytest.raises(InputError, match=r'one for each pair.*\(decision_function_shape="ovr"'):
            as_model(fitted)
        wanted = fitted.set_params(decision_function_shape="ovr").decision_function(ROWS[:20])
        np.testing.assert_allclose(as_model(fitted).logits(IMAGES[:20]), wanted, atol=1e-4)


def test_classifiers_that_cannot_are_refused():
    with pytest.raises(InputError, match="must be a fitted classifier; LogisticRegression has no"):
        as_model(LogisticRegression())
    perceptron = Perceptron().fit(ROWS, LABELS)
    with pytest.raises(InputError, match="must have predict_proba; Perceptron has not"):
        as_model(perceptron, scores="predict_proba")
    with pytest.raises(UnknownName, match="scores must be one of"):
        as_model(perceptron, scores="predict")
