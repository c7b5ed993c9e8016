"""Scores of images in memory."""

from __future__ import annotations

import numpy as np
import pytest
from exact_model import exact, features_of, labelled, logits_of
from stored_images import write_images

from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError, InputWarning
from shiftcal.models import as_model
from shiftcal.scoring import score

IMAGES, LABELS = labelled(30, seed=6)


def test_scores_are_the_models_logits_bit_for_bit():
    model = exact()
    scores = score(model, IMAGES, LABELS)
    np.testing.assert_array_equal(scores.values, model.logits(IMAGES), strict=True)
    np.testing.assert_array_equal(scores.labels, LABELS)
    assert (scores.input, scores.ids, scores.classes, scores.features) == (
        "logits",
        None,
        None,
        None,
    )


@pytest.mark.parametrize("shard_size", [1, 7, 16, 1024])
def test_the_cut_into_shards_changes_nothing(shard_size):
    model = exact()
    found = score(model, IMAGES, shard_size=shard_size)
    np.testing.assert_array_equal(found.values, logits_of(IMAGES), strict=True)
    assert found.labels is None
    assert model.function.seen == 30


def test_probabilities_become_their_logarithm():
    def probabilities(batch):
        p = np.exp(logits_of(batch).astype(np.float64))
        return p / p.sum(axis=1, keepdims=True)

    model = exact(probabilities, output="probabilities")
    np.testing.assert_array_equal(score(model, IMAGES).values, model.logits(IMAGES).astype("f4"))


def test_float16_is_rounded_once():
    found = score(exact(), IMAGES, dtype="float16")
    assert found.values.dtype == np.float16
    np.testing.assert_array_equal(found.values, logits_of(IMAGES).astype(np.float16))


def test_features_come_with_the_logits():
    model = exact(lambda batch: (logits_of(batch), features_of(batch)))
    np.testing.assert_array_equal(score(model, IMAGES).features, features_of(IMAGES))


def test_classes_and_ids_are_those_of_model_and_images(tmp_path):
    names = [f"{'ab'[i % 2]}/{i:02d}.png" for i in range(30)]
    write_images(tmp_path, IMAGES, names)
    found = score(exact(classes=["x", "b", "a", "y"]), str(tmp_path))
    order = sorted(range(30), key=lambda i: names[i])
    assert found.ids.tolist() == sorted(names)
    assert found.classes == ("x", "b", "a", "y")
    np.testing.assert_array_equal(found.labels, [2 if i % 2 == 0 else 1 for i in order])
    np.testing.assert_array_equal(found.values, logits_of(IMAGES[order]))


def broken_folder(folder, bad):
    write_images(folder, IMAGES, [f"{i:02d}.png" for i in range(30)])
    for index in bad:
        file = folder / f"{index:02d}.png"
        file.write_bytes(file.read_bytes()[:40])
    return str(folder)


def test_images_that_cannot_be_read_are_left_out_and_named(tmp_path):
    bad = [0, 1, 2, 11, 29]
    with pytest.warns(InputWarning, match=r"left out 5 of 30 images: .*00\.png.*and 2 more"):
        found = score(exact(), broken_folder(tmp_path, bad), LABELS, shard_size=8)
    good = np.setdiff1d(np.arange(30), bad)
    np.testing.assert_array_equal(found.values, logits_of(IMAGES[good]))
    np.testing.assert_array_equal(found.labels, LABELS[good])
    assert found.ids.tolist() == [f"{i:02d}.png" for i in good]


def test_a_set_without_any_image_that_can_be_read_is_refused(tmp_path):
    folder = broken_folder(tmp_path, range(30))
    with pytest.raises(InputError, match=r"none of the 30 images of .* could be read. The first"):
        score(exact(), folder)


def test_a_batch_size_is_found_though_the_first_images_cannot_be_read(tmp_path):
    model = exact(batch_size=None)
    with pytest.warns(InputWarning, match="left out 3"):
        found = score(model, broken_folder(tmp_path, [0, 1, 2]))
    np.testing.assert_array_equal(found.values, logits_of(IMAGES[3:]))


def test_a_cache_is_used_by_the_next_call(tmp_path):
    first, second = exact(), exact()
    one = score(first, IMAGES, shard_size=8, cache=tmp_path)
    two = score(second, IMAGES, shard_size=8, cache=tmp_path)
    np.testing.assert_array_equal(one.values, two.values, strict=True)
    assert (first.function.seen, second.function.seen) == (30, 0)


def test_a_cache_with_a_model_without_a_key_is_warned_of(tmp_path):
    with pytest.warns(InputWarning, match="cannot be told"):
        score(as_model(logits_of, raw=True), IMAGES, cache=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float64"}, "dtype .*float32"),
        ({"engine": "local"}, r"engine must be an engine, such as LocalEngine.*got 'local'"),
        ({"shard_size": 0}, "shard_size must be a whole number of at least 1"),
        ({"labels": [0, 1]}, "labels"),
        ({"labels": np.full(30, 4)}, "must be from 0 to 3"),
    ],
)
def test_what_cannot_be_used_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        score(exact(), IMAGES, **options)


def test_labels_by_the_columns_of_the_model_can_be_given_to_class_folders(tmp_path):
    write_images(tmp_path, IMAGES, [f"{'ab'[i // 15]}/{i:02d}.png" for i in range(30)])
    with pytest.raises(InputError, match=r"2 classes .*labels=\.\.\., on the command line --lab"):
        score(exact(), str(tmp_path))
    images = as_image_set(str(tmp_path), labels=LABELS, classes=["a", "b", "c", "d"])
    np.testing.assert_array_equal(score(exact(), images).labels, LABELS)
