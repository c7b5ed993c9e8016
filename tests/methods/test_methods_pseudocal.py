"""PseudoCal."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import shiftcal as sc
from shiftcal.methods.simple import PseudoCal
from shiftcal.models import as_model
from shiftcal.scoring import score_mixed

BANK = make_bank(600)
TARGET, _ = draw(300, STEPS[2], seed=5)


def mixed(n=400, strength=STEPS[4], *, seed=9):
    logits, labels = draw(n, strength, seed=seed)
    return sc.Scores(logits, labels=labels)


def least_nll(logits, labels):
    """scipy's answer to what the temperature is."""

    def nll(log_t):
        return -log_softmax(logits / np.exp(log_t), axis=1)[np.arange(len(labels)), labels].mean()

    return float(np.exp(minimize_scalar(nll, bounds=(-3, 4), options={"xatol": 1e-9}).x))


def test_the_temperature_is_that_of_least_nll_on_the_mixed_rows():
    given = mixed()
    method = PseudoCal().fit(BANK)
    chosen = method.adapt(TARGET, mixed=given)
    # scipy brackets a flat minimum to about the square root of the precision
    assert chosen.temperature == pytest.approx(least_nll(given.values, given.labels), rel=1e-6)
    np.testing.assert_allclose(
        method.predict_proba(TARGET), softmax(TARGET / chosen.temperature, axis=1), rtol=1e-9
    )
    assert chosen.flags == ()
    right = np.mean(given.values.argmax(axis=1) == given.labels)
    assert chosen.details == {
        "mixed_rows": 400.0,
        "mixed_accuracy": right,
        "clean_temperature": sc.TS().fit(BANK).map_.temperature_,
    }
    assert chosen.n_target == 300


def test_mixed_rows_may_be_of_either_kind():
    given = mixed()
    by_probs = PseudoCal().fit(BANK).adapt(TARGET, mixed=given.as_kind("probabilities"))
    by_logits = PseudoCal().fit(BANK).adapt(TARGET, mixed=given)
    assert by_probs.temperature == pytest.approx(by_logits.temperature, rel=1e-6)


@pytest.mark.parametrize(("n", "flagged"), [(99, True), (100, False)])
def test_few_mixed_rows_are_flagged(n, flagged):
    chosen = PseudoCal().fit(BANK).adapt(TARGET, mixed=mixed(n))
    assert chosen.has("few-rows") is flagged
    if flagged:
        assert "99 mixed images were looked at" in chosen.flags[0].message


@pytest.mark.parametrize("always", ["right", "wrong"])
def test_mixtures_that_tell_no_temperature_leave_that_of_the_clean_set(always):
    given = mixed()
    column = given.values.argmax if always == "right" else given.values.argmin
    method = PseudoCal().fit(BANK)
    chosen = method.adapt(TARGET, mixed=sc.Scores(given.values, labels=column(axis=1)))
    assert chosen.has("clean-fallback")
    assert "that of the clean calibration set is used" in chosen.flags[0].message
    assert chosen.details["mixed_accuracy"] == (always == "right")
    np.testing.assert_array_equal(
        method.predict_proba(TARGET), sc.TS().fit(BANK).predict_proba(TARGET)
    )


def test_digits_from_images_to_confidences():
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8) * 15.9).astype(np.uint8)
    noise = np.random.default_rng(1).normal(0, 55, images[1000:].shape)
    target = np.clip(images[1000:] + noise, 0, 255).astype(np.uint8)
    # hardly regularised, so over-confident
    fitted = LogisticRegression(C=100.0, max_iter=400).fit(
        images[:600].reshape(600, -1), labels[:600]
    )

    def rows(batch):
        return batch[..., 0].reshape(len(batch), -1)

    model = as_model(
        fitted,
        features=rows,
        preprocessing=sc.models.Preprocessing(layout="nhwc", dtype="uint8"),
    )
    bank = sc.SurrogateBank.synthesize(model, images[600:1000], labels[600:1000], severities=1)
    scores = sc.score(model, target)
    method = PseudoCal().fit(bank)
    chosen = method.adapt(scores, mixed=score_mixed(model, target, scores))
    assert chosen.flags == ()
    assert chosen.details["mixed_rows"] > 500
    assert 0.3 < chosen.details["mixed_accuracy"] < 0.98
    raw = softmax(scores.values, axis=1)
    right = scores.values.argmax(axis=1) == labels[1000:]
    before = sc.ece(raw.max(axis=1), right)
    after = sc.ece(method.confidence(scores), right)
    assert chosen.temperature > 1.5
    assert after < before / 2
