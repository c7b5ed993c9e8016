"""Banks of rows, of texts, and of whatever else a model takes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import shiftcal as sc
from shiftcal.corruptions import corrupt_inputs, tabular
from shiftcal.errors import InputError, UnknownName

ROOT = Path(__file__).resolve().parents[2]
ROWS, LABELS = load_wine(return_X_y=True)
NAMES = np.array(["barolo", "grignolino", "barbera"])[LABELS]
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS[::2], NAMES[::2])


def bank_of(model=LOGISTIC, inputs=ROWS, labels=NAMES, **options):
    return sc.SurrogateBank.from_inputs(model, inputs, labels, **{"corruption": "noise", **options})


def small_corpus():
    path = ROOT / "benchmarks" / "accuracy" / "small_corpus.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.corpus


def test_the_sets_are_the_inputs_as_they_are_and_corrupted():
    bank = bank_of(corruption=["noise", tabular.MissingValues(fill="median")], severities=(1, 4))
    assert [s.name for s in bank] == [
        "clean",
        "noise, severity 1",
        "noise, severity 4",
        "missing_values, severity 1",
        "missing_values, severity 4",
    ]
    assert [s.severity for s in bank] == [0, 1, 4, 1, 4]
    assert bank.classes == ("barbera", "barolo", "grignolino")
    assert bank.input == "probabilities"
    np.testing.assert_array_equal(np.array(bank.classes)[bank.clean.labels], NAMES)
    by_hand = corrupt_inputs(ROWS, tabular.Noise().fit(ROWS), severity=4)
    wanted = np.log(LOGISTIC.predict_proba(by_hand))
    np.testing.assert_allclose(bank[2].logits, wanted, rtol=1e-12)
    assert bank[2].corruption == "noise"


def test_a_model_that_changes_its_inputs_changes_nothing_else():
    def careless(rows):
        rows -= 5.0
        return LOGISTIC.decision_function(rows + 5.0)

    given = ROWS.copy()
    made = bank_of(careless, given, LABELS, severities=[1, 2])
    np.testing.assert_array_equal(given, ROWS)
    wanted = bank_of(LOGISTIC.decision_function, ROWS, LABELS, severities=[1, 2])
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, atol=1e-9)  # x - 5 + 5 is rounded


def test_features_are_those_of_the_clean_set():
    features = ROWS[:, :4].copy()
    bank = bank_of(features=features)
    features[:] = 0
    np.testing.assert_array_equal(bank.clean.features, ROWS[:, :4])
    cpcs = sc.CPCS(input=bank.input).fit(bank, source_features=ROWS[::2, :4])
    cpcs.adapt(LOGISTIC.predict_proba(ROWS), ROWS[:, :4])
    with pytest.raises(InputError, match=r"features must have shape \(178, d\)"):
        bank_of(features=features[:5])


def test_a_frame_of_mixed_columns_goes_through_a_pipeline():
    data = load_breast_cancer(as_frame=True)
    frame = data.data.iloc[:, :6].copy()
    frame["size"] = pd.qcut(data.data["worst area"], 4, labels=["s", "m", "l", "xl"])
    frame["rough"] = data.data["worst texture"] > 25
    frame["visit"] = pd.date_range("2024-01-01", periods=len(frame))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), ["size", "rough"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(frame[::2], data.target[::2])
    corruption = ["noise", "missing_values", "category_swaps", "drift"]
    bank = bank_of(model, frame, data.target, corruption=corruption)
    assert len(bank) == 21
    accuracies = {s.name: s.accuracy for s in bank.summaries()}
    for name in corruption:
        assert accuracies[f"{name}, severity 5"] < accuracies["clean"]


def test_texts_with_typos_and_dropped_words():
    corpus = small_corpus()
    train, (texts, matters) = (corpus(400, seed=seed) for seed in range(2))
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(*train)
    bank = bank_of(model, texts, matters, corruption=["typos", "dropped_words"])
    accuracies = {s.name: s.accuracy for s in bank.summaries()}
    assert 0.8 < accuracies["clean"] < 0.95  # some messages nobody could tell
    assert accuracies["typos, severity 5"] < accuracies["clean"] - 0.1
    assert accuracies["dropped_words, severity 5"] < accuracies["clean"] - 0.1


def test_a_function_takes_labels_as_indices_or_by_name():
    def model(rows):
        return 5 * LOGISTIC.decision_function(rows)

    order = ("barbera", "barolo", "grignolino")
    indices = np.array([order.index(name) for name in NAMES])
    by_index = bank_of(model, labels=indices)
    by_name = bank_of(model, labels=NAMES, classes=order)
    assert by_index.input == by_name.input == "logits"
    np.testing.assert_array_equal(by_index.clean.labels, by_name.clean.labels)
    assert (by_index.classes, by_name.classes) == (None, order)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.where(LABELS == 2, "beer", NAMES), "calls its classes .*'barolo'.* got 'beer'"),
        (NAMES[:9], "one entry per row: 178 rows, 9 labels"),
        (NAMES[:, None], r"must have shape \(n,\); got shape \(178, 1\)"),
    ],
)
def test_labels_that_are_none_of_its_classes_raise(labels, said):
    with pytest.raises(InputError, match=said):
        bank_of(labels=labels)


def test_a_model_that_cannot_take_missing_values_is_told_apart():
    with pytest.raises(InputError, match=r"(?s)'missing_values, severity 1'.*imputer in fro"):
        bank_of(corruption="missing_values")
    with pytest.raises(InputError, match="the set 'clean': the model failed") as said:
        bank_of(inputs=np.where(ROWS > 1000, np.nan, ROWS), corruption="drift")
    assert "imputer in front of" not in str(said.value)


def test_functions_stand_for_corruptions():
    def smaller(rows, severity):
        return rows / (1 + severity)

    assert [s.name for s in bank_of(corruption=smaller, severities=[2, 1])][1:] == [
        "smaller, severity 1",
        "smaller, severity 2",
    ]
    ladder = [lambda rows: rows * 0.9, lambda rows: rows * 0.5]
    bank = bank_of(corruption=ladder)
    assert [s.name for s in bank][1:] == ["custom, severity 1", "custom, severity 2"]
    both = bank_of(corruption=[smaller, "noise"], severities=2)
    assert [s.name for s in both][1:] == ["smaller, severity 2", "noise, severity 2"]


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"corruption": "typo"}, UnknownName, "Did you mean 'typos'"),
        ({"corruption": "pixelate"}, UnknownName, "is for images"),
        ({"corruption": []}, InputError, r"must be given, each once; got \[\]"),
        ({"severities": 6}, InputError, "at most 5; got 6"),
        ({"input": "logit"}, UnknownName, "Did you mean 'logits'"),
        ({"classes": ["a", "b"]}, InputError, "classes must be the names of the 3 columns"),
        ({"inputs": ROWS[:0], "labels": NAMES[:0]}, InputError, "one at least"),
        ({"corruption": lambda rows: rows[1:]}, InputError, "must return 178 inputs"),
    ],
)
def test_what_cannot_be_used_is_said(options, kind, said):
    with pytest.raises(kind, match=said):
        bank_of(**options)
