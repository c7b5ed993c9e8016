"""Labels of images as columns of a model's logits."""

from __future__ import annotations

import pytest
from exact_model import exact
from stored_images import draw_images

from shiftcal.datasets import as_image_set
from shiftcal.errors import InputError
from shiftcal.scoring.work import model_labels

IMAGES = draw_images(4)


def matched(labels, theirs=None, ours=None, k=4):
    images = as_image_set(IMAGES, labels=labels, classes=theirs)
    found = model_labels(images, exact(classes=ours), k)
    return None if found is None else found.tolist()


def test_images_without_labels_have_none():
    assert matched(None) is None
    assert matched(None, ["a", "b"], ["c", "d"], k=2) is None


def test_classes_with_names_on_both_sides_are_matched_by_name():
    assert matched([0, 1, 2, 1], ["cat", "ant", "bee"], ["ant", "bee", "cat", "dog"]) == [
        2,
        0,
        1,
        0,
    ]


def test_an_image_of_a_class_the_model_has_not_is_refused():
    with pytest.raises(InputError, match="class 'yak', which is not among the model's, 4 classes"):
        matched([0, 1, 1, 0], ["ant", "yak"], ["ant", "bee", "cat", "dog"])


@pytest.mark.parametrize(
    ("theirs", "ours"), [(None, ["ant", "bee", "cat", "dog"]), (["d", "c", "b", "a"], None)]
)
def test_without_names_on_one_side_they_are_matched_by_number(theirs, ours):
    assert matched([3, 0, 1, 2], theirs, ours) == [3, 0, 1, 2]


def test_names_on_both_sides_with_nothing_in_common_are_refused():
    with pytest.raises(InputError, match=r"the class '0-dog', which is not among the model's, 4"):
        matched([0, 1, 2, 3], ["0-dog", "1-cat", "2-bee", "3-ant"], ["ant", "bee", "cat", "dog"])


@pytest.mark.parametrize("ours", [None, [f"class {j}" for j in range(12)]])
def test_folders_called_by_numbers_are_columns_whatever_their_order(ours):
    theirs = sorted(str(j) for j in range(12))  # 0, 1, 10, 11, 2 ...
    assert matched([0, 2, 3, 4], theirs, ours, k=12) == [0, 10, 11, 2]
    with pytest.raises(InputError, match="must be from 0 to 10"):
        matched([0, 2, 3, 4], theirs, None, k=11)


def test_wordnet_folders_are_in_the_order_of_the_model():
    theirs = ["n01440764", "n01443537", "n01484850", "n01491361"]
    assert matched([3, 0, 1, 2], theirs, ["tench", "goldfish", "shark", "tiger"]) == [3, 0, 1, 2]


def test_a_label_beyond_the_columns_is_refused():
    with pytest.raises(InputError, match=r"must be from 0 to 3, .* got 4"):
        matched([0, 4, 1, 0])
