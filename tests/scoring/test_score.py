"""Scores of images, mixed images and other inputs, in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from exact_model import exact, features_of, labelled, logits_of
from scipy.special import softmax
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from stored_images import write_images

import shiftcal as sc
from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError, InputWarning
from shiftcal.models import Preprocessing, as_model
from shiftcal.scoring import score, score_inputs, score_mixed

IMAGES, LABELS = labelled(30, seed=6)


@pytest.mark.parametrize("shard_size", [1, 7, 1024])
def test_scores_are_the_models_logits_bit_for_bit(shard_size):
    model = exact()
    scores = score(model, IMAGES, LABELS, shard_size=shard_size)
    np.testing.assert_array_equal(scores.values, logits_of(IMAGES), strict=True)
    np.testing.assert_array_equal(scores.labels, LABELS)
    assert (scores.input, scores.ids, scores.classes) == ("logits", None, None)
    assert model.function.seen == 30


def test_float16_is_rounded_once_and_rejects_what_it_cannot_hold():
    found = score(exact(), IMAGES, dtype="float16")
    np.testing.assert_array_equal(found.values, logits_of(IMAGES).astype(np.float16), strict=True)
    big = exact(lambda batch: 1e6 * logits_of(batch))
    with pytest.raises(InputError, match=r"images 0 to 7 \(clean\) are more.* as float32"):
        score(big, IMAGES, dtype="float16", shard_size=8)


def test_features_classes_and_ids_are_those_of_model_and_images(tmp_path):
    names = [f"{'ab'[i % 2]}/{i:02d}.png" for i in range(30)]
    write_images(tmp_path, IMAGES, names)
    model = exact(lambda b: (logits_of(b), features_of(b)), classes=["x", "b", "a", "y"])
    found = score(model, str(tmp_path))
    order = sorted(range(30), key=lambda i: names[i])
    assert found.ids.tolist() == sorted(names)
    assert found.classes == ("x", "b", "a", "y")
    np.testing.assert_array_equal(found.labels, [2 if i % 2 == 0 else 1 for i in order])
    np.testing.assert_array_equal(found.values, logits_of(IMAGES[order]))
    np.testing.assert_array_equal(found.features, features_of(IMAGES[order]))


def test_images_that_cannot_be_read_are_left_out_and_named(tmp_path):
    write_images(tmp_path, IMAGES, [f"{i:02d}.png" for i in range(30)])
    bad = [0, 1, 2, 11, 29]
    for index in bad:
        (tmp_path / f"{index:02d}.png").write_bytes(b"\x89PNG no more")
    with pytest.warns(InputWarning, match=r"left out 5 of 30 images: .*00\.png.*and 2 more"):
        found = score(exact(batch_size=None), str(tmp_path), LABELS, shard_size=8)
    good = np.setdiff1d(np.arange(30), bad)
    np.testing.assert_array_equal(found.values, logits_of(IMAGES[good]))
    np.testing.assert_array_equal(found.labels, LABELS[good])
    assert found.ids.tolist() == [f"{i:02d}.png" for i in good]
    for file in tmp_path.iterdir():
        file.write_bytes(b"\x89PNG no more")
    with pytest.raises(InputError, match=r"none of the 30 images of .* could be read. The first"):
        score(exact(), str(tmp_path))


def test_a_cache_is_used_by_the_next_call(tmp_path):
    first, second = exact(), exact()
    one = score(first, IMAGES, shard_size=8, cache=tmp_path)
    two = score(second, IMAGES, shard_size=8, cache=tmp_path)
    np.testing.assert_array_equal(one.values, two.values, strict=True)
    assert (first.function.seen, second.function.seen) == (30, 0)
    with pytest.warns(InputWarning, match="key='my-model-v1'"):
        score(as_model(logits_of, raw=True), IMAGES, cache=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float64"}, "dtype .*float32"),
        ({"engine": "local"}, r"engine must be an engine, such as LocalEngine.*got local"),
        ({"shard_size": 0}, "shard_size must be a whole number of at least 1"),
        ({"labels": np.full(30, 4)}, "must be from 0 to 3"),
    ],
)
def test_what_cannot_be_used_raises(options, message):
    with pytest.raises(InputError, match=message):
        score(exact(), IMAGES, **options)


# Labels as columns of the model's logits.


def matched(labels, theirs=None, ours=None, k=4):
    images = as_image_set(IMAGES[:4], labels=labels, classes=theirs)
    model = as_model(lambda batch: np.full((len(batch), k), -9.0), classes=ours)
    return score(model, images).labels.tolist()


ANIMALS = ["ant", "bee", "cat", "dog"]
NUMBERS = sorted(str(j) for j in range(12))  # 0, 1, 10, 11, 2 ...


@pytest.mark.parametrize(
    ("labels", "theirs", "ours", "k", "columns"),
    [
        ([0, 1, 2, 1], ["cat", "ant", "bee"], ANIMALS, 4, [2, 0, 1, 0]),
        ([3, 0, 1, 2], None, ANIMALS, 4, [3, 0, 1, 2]),
        ([3, 0, 1, 2], ["d", "c", "b", "a"], None, 4, [3, 0, 1, 2]),
        ([0, 2, 3, 4], NUMBERS, None, 12, [0, 10, 11, 2]),
        ([1, 0], ["n01440764", "n01443537"] * 1, ["tench", "goldfish"], 2, [1, 0]),
    ],
    ids=["by name", "no names", "order", "numbers", "wordnet"],
)
def test_labels_are_columns_of_the_logits(labels, theirs, ours, k, columns):
    labels = (labels * 2)[:4]
    assert matched(labels, theirs, ours, k) == (columns * 2)[:4]


@pytest.mark.parametrize(
    ("labels", "theirs", "ours", "message"),
    [
        ([0, 1, 1, 0], ["ant", "yak"], ANIMALS, "class 'yak', which is not among the model's 4"),
        ([0, 1, 1, 0], ["a", "b"], None, r"2 classes and the model 4"),
        ([0, 4, 1, 0], None, None, r"must be from 0 to 3, .* got 4"),
    ],
)
def test_labels_of_other_classes_raise(labels, theirs, ours, message):
    with pytest.raises(InputError, match=message):
        matched(labels, theirs, ours)


def test_labels_given_by_name_are_the_images_classes_or_the_models(tmp_path):
    model = exact(classes=["cow", "dog", "cat", "emu"])
    (tmp_path / "l.csv").write_text("label\ncat\ncow\ncow\ndog\n")
    assert score(model, IMAGES[:4], tmp_path / "l.csv").labels.tolist() == [2, 0, 0, 1]
    for numbers in ([2, 1, 0, 0], np.array(["2", "1", "0", "0"], object)):
        assert score(model, IMAGES[:4], numbers).labels.tolist() == [2, 1, 0, 0]
    mine = as_image_set(IMAGES[:4], labels=[0, 1, 1, 0], classes=["dog", "cat"])
    assert score(model, mine, ["cat", "dog", "dog", "dog"]).labels.tolist() == [2, 1, 1, 1]
    with pytest.raises(InputError, match=r"'caat' is not. Did you mean 'cat'"):
        score(model, IMAGES[:4], ["cat", "caat", "cow", "cow"])


def test_resizing_images_of_a_networks_size_again_warns():
    images = as_image_set(IMAGES)
    images.ready_made = 10
    for framing, times in (({"resize": 11, "crop": 10}, 1), ({"crop": 10}, 0)):
        preprocessing = Preprocessing(layout="nhwc", **framing)
        model = as_model(logits_of, preprocessing=preprocessing, key="exact", batch_size=4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            score(model, images)
        texts = [str(one.message) for one in caught if issubclass(one.category, InputWarning)]
        assert len(texts) == times
        assert all("?resize=none in the spec of the model" in text for text in texts)


# Mixed images, for PseudoCal.

MIXED, _ = labelled(60, seed=6)
PREDICTED = logits_of(MIXED).argmax(axis=1)


@pytest.mark.parametrize(("seed", "ratio"), [(0, 0.65), (5, 0.8)])
def test_mixtures_have_the_predictions_as_labels(seed, ratio):
    partner = np.random.default_rng(seed).permutation(60)
    kept = PREDICTED[partner] != PREDICTED
    a, b = MIXED[kept].astype(np.float32), MIXED[partner[kept]].astype(np.float32)
    mixed = np.rint(np.float32(ratio) * a + np.float32(1 - ratio) * b).astype(np.uint8)
    model = exact()
    known = score(model, MIXED)
    for scores, rows in ((None, 60), (known, 0)):
        model.function.calls.clear()
        found = score_mixed(model, MIXED, scores, seed=seed, ratio=ratio)
        np.testing.assert_array_equal(found.values, logits_of(mixed))
        np.testing.assert_array_equal(found.labels, PREDICTED[kept])
        assert model.function.seen == found.n + rows


def test_images_that_cannot_be_read_are_not_mixed(tmp_path):
    names = [f"{i:02}.png" for i in range(60)]
    write_images(tmp_path, MIXED, names)
    (tmp_path / "07.png").write_bytes(b"no image")
    with pytest.warns(InputWarning, match="left out 1 of 60"):
        found = score_mixed(exact(), [str(tmp_path / name) for name in names])
    parts = {part for name in found.ids for part in name.split("+")}
    assert not any(part.endswith("07.png") for part in parts)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (sc.Scores(logits_of(MIXED[1:])), r"must be Scores of the 60 images .* 59 rows"),
        (logits_of(MIXED), "must be Scores"),
    ],
)
def test_scores_of_other_images_raise(scores, message):
    with pytest.raises(InputError, match=message):
        score_mixed(exact(), MIXED, scores)


# Rows, texts and whatever else a model takes.

ROWS, WINES = load_wine(return_X_y=True)
NAMES = np.array(["barolo", "grignolino", "barbera"])[WINES]
CLASSIFIER = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, NAMES)
BINARY = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, WINES == 1)


def test_a_classifier_gives_its_probabilities_or_its_decision_function():
    scores = score_inputs(CLASSIFIER, ROWS)
    assert (scores.input, scores.classes) == ("probabilities", ("barbera", "barolo", "grignolino"))
    np.testing.assert_allclose(scores.values, CLASSIFIER.predict_proba(ROWS), rtol=1e-12)
    scores = score_inputs(CLASSIFIER, ROWS, input="logits")
    np.testing.assert_array_equal(scores.values, CLASSIFIER.decision_function(ROWS))
    binary = score_inputs(BINARY, ROWS, input="logits")
    # One column s is [0, s]: a softmax of that is what the classifier says.
    np.testing.assert_allclose(softmax(binary.values, axis=1), BINARY.predict_proba(ROWS))
    scaled = StandardScaler().fit_transform(ROWS)
    assert score_inputs(LinearSVC().fit(scaled, WINES), scaled).input == "logits"


def test_a_function_gives_logits_by_default():
    scores = score_inputs(lambda rows: rows[:, :3], ROWS, classes=["a", "b", "c"])
    assert (scores.input, scores.classes) == ("logits", ("a", "b", "c"))
    given = score_inputs(CLASSIFIER.predict_proba, ROWS, input="probabilities")
    assert (given.input, given.classes) == ("probabilities", None)


def raising(rows):
    raise RuntimeError("no such layer")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LogisticRegression(), "LogisticRegression has no classes_ of one. Fit"),
        ("model.onnx", "got 'model.onnx'"),
        (sc.models.CallableModel(raising), "CallableModel is for images"),
        (SVC(decision_function_shape="ovo").fit(ROWS, NAMES), 'decision_function_shape="ovr"'),
        (raising, "the model failed on the inputs: RuntimeError: no such layer"),
        (CLASSIFIER.predict_proba, r'these logits are probabilities.* input="probabilities"'),
        (lambda rows: rows[:5, :3], "a row for each of 178 inputs; got 5 rows"),
        (lambda rows: rows[:, :1], "a column per class, k >= 2"),
        (lambda rows: np.full((len(rows), 3), np.nan), "must be finite; row 0 holds nan"),
        (CLASSIFIER.predict, "the model's output cannot be used"),
    ],
)
def test_models_of_inputs_that_cannot_be_used_raise(model, message):
    with pytest.raises(InputError, match=message):
        score_inputs(model, ROWS)
