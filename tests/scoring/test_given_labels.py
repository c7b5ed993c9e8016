"""Labels given beside the images: names are the images' classes, or the model's."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError
from shiftcal.models import as_model
from shiftcal.scoring import score
from shiftcal.scoring.work import with_labels

IMAGES = np.random.default_rng(4).integers(0, 256, (4, 16, 16, 3), np.uint8)


def three_means(batch):
    return batch.mean(axis=(2, 3)) * 10


MODEL = as_model(three_means, key="three-means", classes=["cow", "dog", "cat"])


def test_names_in_a_table_are_the_models_classes(tmp_path):
    (tmp_path / "l.csv").write_text("label\ncat\ncow\ncow\ndog\n")
    scores = score(MODEL, IMAGES, tmp_path / "l.csv")
    assert scores.labels.tolist() == [2, 0, 0, 1]
    assert score(MODEL, IMAGES, ["dog", "cat", "cow", "cow"]).labels.tolist() == [1, 2, 0, 0]


def test_names_that_the_images_have_stay_theirs():
    mine = as_image_set(IMAGES, labels=[0, 1, 1, 0], classes=["dog", "cat"])
    found = with_labels(mine, ["cat", "dog", "dog", "dog"], MODEL)
    assert found.classes == ("dog", "cat")
    assert found.labels.tolist() == [1, 0, 0, 0]
    found = with_labels(mine, ["cow", "dog", "dog", "dog"], MODEL)
    assert found.classes == ("cow", "dog", "cat")
    assert found.labels.tolist() == [0, 1, 1, 1]


def test_numbers_are_not_taken_for_names(tmp_path):
    (tmp_path / "l.txt").write_text("2\n1\n0\n0\n")
    for labels in (tmp_path / "l.txt", [2, 1, 0, 0], np.array(["2", "1", "0", "0"], object)):
        assert score(MODEL, IMAGES, labels).labels.tolist() == [2, 1, 0, 0]
    # Classes that are called by numbers are names, whatever their order.
    named = as_model(three_means, key="three-means", classes=["3", "1", "2"])
    assert score(named, IMAGES, np.array(["1", "3", "3", "2"])).labels.tolist() == [1, 0, 0, 2]


def test_names_of_nobody_are_refused():
    with pytest.raises(InputError, match=r"labels must be class indices where classes have no nam"):
        score(MODEL, IMAGES, ["a", "b", "a", "a"])
    with pytest.raises(InputError, match=r"among the 3 classes; 'caat' is not. Did you mean 'cat'"):
        score(MODEL, IMAGES, ["cat", "caat", "cow", "cow"])
    with pytest.raises(InputError, match="no names"):
        score(as_model(three_means, key="m"), IMAGES, ["cat", "cat", "cow", "cow"])
