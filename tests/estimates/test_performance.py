"""Metrics without labels: against scikit-learn, and what Performance promises."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ladder_data import STEPS, draw, make_bank
from scipy.special import softmax
from sklearn import metrics as oracle

from shiftcal import Performance, Realign, Rehearsal, Scores, SurrogateBank, load, methods
from shiftcal.errors import InputError, NotFittedError

BANK = make_bank(600)
TARGET, LABELS = draw(500, STEPS[3], seed=77)


def outputs_of(k: int, seed: int, *, digits: int = 9):
    """Probabilities, model outputs and labels; rounded outputs have ties."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.5), 120)
    outputs = np.round(
        softmax(np.log(probs + 1e-3) + rng.normal(0, 1, probs.shape), axis=1), digits
    )
    return probs, outputs / outputs.sum(axis=1, keepdims=True), rng.integers(0, k, 120)


def values(found):
    """All values of a Performance as one array."""
    totals = (found.accuracy, found.macro_f1, found.auroc, found.average_precision)
    per_class = (found.precision, found.recall, found.f1, found.prior)
    every = [i.value for i in totals] + [i.value for part in per_class for i in part]
    return np.concatenate([every, found.confusion.ravel()])


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("digits", [9, 1])
def test_with_the_truth_as_probabilities_it_is_scikit_learn(k, digits):
    _, outputs, labels = outputs_of(k, seed=k, digits=digits)
    found = Performance.expected(np.eye(k)[labels], outputs)
    predicted = outputs.argmax(axis=1)
    every = oracle.precision_recall_fscore_support(
        labels, predicted, labels=range(k), zero_division=0
    )
    for mine, theirs in zip((found.precision, found.recall, found.f1), every[:3], strict=True):
        assert [i.value for i in mine] == pytest.approx(theirs)
    assert [i.value for i in found.prior] == pytest.approx(np.bincount(labels, minlength=k) / 120)
    assert found.accuracy.value == pytest.approx(oracle.accuracy_score(labels, predicted))
    macro = oracle.f1_score(labels, predicted, average="macro")
    assert found.macro_f1.value == pytest.approx(macro)
    np.testing.assert_allclose(
        found.confusion, oracle.confusion_matrix(labels, predicted, labels=range(k)).T, atol=1e-9
    )
    scores = outputs[:, 1] if k == 2 else outputs
    auroc = oracle.roc_auc_score(labels, scores, multi_class="ovr")
    truth = labels if k == 2 else np.eye(k)[labels]
    assert found.auroc.value == pytest.approx(auroc)
    average = oracle.average_precision_score(truth, scores)
    assert found.average_precision.value == pytest.approx(average)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("digits", [9, 1])
def test_a_row_counts_for_every_class_with_its_probability(k, digits):
    probs, outputs, _ = outputs_of(k, seed=10 + k, digits=digits)
    found = Performance.expected(probs, outputs)
    # Every row once for every class, with its probability as the weight.
    labels, rows = np.tile(np.arange(k), 120), np.repeat(np.arange(120), k)
    weights, predicted = probs.ravel(), outputs.argmax(axis=1)[rows]
    matrix = oracle.confusion_matrix(labels, predicted, sample_weight=weights, labels=range(k))
    np.testing.assert_allclose(found.confusion, matrix.T)
    macro = oracle.f1_score(labels, predicted, average="macro", sample_weight=weights)
    assert found.macro_f1.value == pytest.approx(macro)
    aurocs, averages = [], []
    for j in range(1 if k == 2 else 0, k):
        one = {"sample_weight": weights}
        aurocs.append(oracle.roc_auc_score(labels == j, outputs[rows, j], **one))
        averages.append(oracle.average_precision_score(labels == j, outputs[rows, j], **one))
    assert found.auroc.value == pytest.approx(np.mean(aurocs))
    assert found.average_precision.value == pytest.approx(np.mean(averages))


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter_and_intervals_hold_the_value(k, seed):
    probs, outputs, _ = outputs_of(k, seed, digits=2)
    found = Performance.expected(probs, outputs)
    order = np.random.default_rng(seed).permutation(len(probs))
    again = Performance.expected(probs[order], outputs[order])
    np.testing.assert_allclose(values(found), values(again), rtol=1e-9, atol=1e-12)
    assert found.confusion.sum() == pytest.approx(len(probs))
    intervals = (found.macro_f1, found.auroc, found.average_precision, *found.precision)
    assert all(0 <= i.low <= i.value <= i.high <= 1 for i in intervals)
    assert (found.confusion_low <= found.confusion).all()
    assert (found.confusion <= found.confusion_high).all()


def test_intervals_hold_the_metrics_of_labels_drawn_from_the_probabilities():
    rng = np.random.default_rng(0)
    held = []
    for seed in range(40):
        probs, outputs, _ = outputs_of(4, seed)
        labels = (probs.cumsum(axis=1) < rng.random((len(probs), 1))).sum(axis=1)
        truth = Performance.expected(np.eye(4)[labels], outputs)
        found = Performance.expected(probs, outputs)
        for name in ("accuracy", "macro_f1", "auroc", "average_precision"):
            ends = getattr(found, name)
            held.append(ends.low <= getattr(truth, name).value <= ends.high)
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("name", ["realign", "rehearsal", "ts"])
def test_the_accuracy_is_the_mean_confidence_of_the_method(name):
    method = methods.get(name)().fit(BANK)
    method.adapt(TARGET)
    found = Performance.of(method, TARGET)
    assert found.accuracy.value == pytest.approx(method.confidence(TARGET).mean())
    if name != "ts":  # which knows of no shift
        truth = (TARGET.argmax(axis=1) == LABELS).mean()
        assert found.accuracy.low <= truth <= found.accuracy.high
    assert any(flag.code == "no-shift-error" for flag in found.flags) == (name == "ts")
    # AUROC is that of the probabilities, which have no part in whether a prediction is correct.
    probs, outputs = method.predict_proba(TARGET), softmax(TARGET, axis=1)
    expected = Performance.expected(probs, outputs)
    assert found.auroc.value == pytest.approx(expected.auroc.value)
    if name == "ts":
        np.testing.assert_allclose(values(found), values(expected))


def test_errors_of_the_calibration_widen_the_intervals():
    method = Realign().fit(BANK)
    method.adapt(TARGET)
    found = Performance.of(method, TARGET)
    sampling = Performance.expected(method.predict_proba(TARGET), softmax(TARGET, axis=1))
    for name in ("accuracy", "macro_f1", "auroc", "average_precision"):
        wide, narrow = getattr(found, name), getattr(sampling, name)
        assert wide.high - wide.low > narrow.high - narrow.low
    less = Performance.of(method, TARGET, level=0.5)
    assert less.macro_f1.high < found.macro_f1.high
    assert Performance.of(method, TARGET, seed=1).macro_f1.high != found.macro_f1.high


def test_a_saved_method_and_scores_give_the_same(tmp_path):
    classes = ("ant", "bee", "cat", "dog", "elk", "fox")
    bank = SurrogateBank.from_arrays(
        [s.logits for s in BANK], BANK.clean.labels, classes=classes, corruption="fading"
    )
    method = Rehearsal().fit(bank)
    scores = Scores(TARGET, "logits", classes=classes)
    method.adapt(scores)
    found = Performance.of(method, scores)
    assert found.classes == classes
    method.save(tmp_path / "method.json")
    again = Performance.of(load(tmp_path / "method.json"), TARGET)
    assert json.dumps(again.to_dict()) == json.dumps(found.to_dict())
    assert "macro_f1" in str(found)


def test_one_row_is_enough():
    found = Performance.expected([[0.2, 0.8]])
    assert found.accuracy.value == 0.8
    assert not math.isnan(found.auroc.high)


@pytest.mark.parametrize(
    ("probs", "outputs", "options", "words"),
    [
        ([[0.5, 0.6]], None, {}, "sum"),
        ([[0.5, 0.5]], [[0.2, 0.3, 0.5]], {}, "2 columns|k = 2|2"),
        ([[0.5, 0.5]], [[0.5, 0.5]] * 2, {}, "same rows; got 1 and 2"),
        ([[0.5, 0.5]], None, {"level": 95}, "level"),
        ([[0.5, 0.5]], None, {"seed": -1}, "seed"),
    ],
)
def test_bad_input_raises(probs, outputs, options, words):
    with pytest.raises(InputError, match=words):
        Performance.expected(probs, outputs, **options)


def test_a_method_must_be_adapted():
    with pytest.raises(NotFittedError, match="call adapt"):
        Performance.of(Rehearsal().fit(BANK), TARGET)
