"""Groups of classes: the published ones, and images by them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images

from shiftcal.datasets import as_image_set, class_groups, grouped
from shiftcal.errors import InputError

GROUPS = {"pet": [3, 5], "car": (9,), "bird": np.array([2])}


def images(labels, **options):
    return as_image_set(draw_images(len(labels)), labels=labels, **options)


def test_images_of_no_group_are_left_out_and_the_others_labelled_by_group():
    whole = images([9, 0, 5, 2, 3, 9])
    made = grouped(whole, GROUPS)
    assert made.classes == ("pet", "car", "bird")
    assert made.labels.tolist() == [1, 0, 2, 0, 1]
    assert made.ids(range(5)) == ["0", "2", "3", "4", "5"]
    np.testing.assert_array_equal(made[1], whole[2])
    assert made.name == "5 of images"
    assert grouped(whole, GROUPS, name="few").name == "few"
    assert whole.labels.tolist() == [9, 0, 5, 2, 3, 9]
    assert whole.classes is None
    assert pickle.loads(pickle.dumps(made)).labels.tolist() == made.labels.tolist()


def test_images_that_cannot_be_grouped_are_refused():
    with pytest.raises(InputError, match="images must have labels to be grouped by; it has none"):
        grouped(as_image_set(draw_images(2)), GROUPS)
    with pytest.raises(InputError, match="must have images of the groups, pet, car, bird"):
        grouped(images([0, 1]), GROUPS)
    with pytest.raises(InputError, match=r"'car' must be from 0 to 5, since there are 6 classes"):
        grouped(images([0, 1], classes=list("abcdef")), GROUPS)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[0], [1]], "groups must be two or more, a mapping of names .*; got list"),
        ({"a": [0]}, "groups must be two or more.*got 1"),
        ({"a": [0], "b": []}, r"group 'b' must be class indices, one or more.*shape \(0,\)"),
        ({"a": [0], "b": [0.5]}, "group 'b' must be class indices.*float64"),
        ({"a": [0], "b": [[1]]}, r"group 'b' must be class indices.*shape \(1, 1\)"),
        ({"a": [0], "b": [True]}, "group 'b' must be class indices.*bool"),
        ({"a": [0], "b": 1}, "group 'b' must be an array; got int"),
        ({"a": [0, 1], "b": [2, 1]}, "in one group at most; 1 is in 'a' and in 'b'"),
        ({"a": [0], "b": [2, 1, 2]}, "'b' must name each class once; 2 comes twice"),
        ({"a": [0], "b": [2, -1]}, "indices of group 'b' must be 0 or more; got -1"),
        ({"a": [0], "": [1]}, "classes must have names"),
    ],
)
def test_groups_that_are_none_are_refused(groups, words):
    with pytest.raises(InputError, match=words):
        grouped(images([0, 1]), groups)


def test_the_sixteen_groups_have_the_published_sizes():
    groups = class_groups("imagenet16")
    assert list(groups) == sorted(groups)
    assert {name: len(members) for name, members in groups.items()} == {
        "airplane": 1,
        "bear": 4,
        "bicycle": 2,
        "bird": 49,
        "boat": 5,
        "bottle": 7,
        "car": 3,
        "cat": 6,
        "chair": 4,
        "clock": 3,
        "dog": 109,
        "elephant": 2,
        "keyboard": 2,
        "knife": 1,
        "oven": 1,
        "truck": 8,
    }
    members = [one for group in groups.values() for one in group]
    assert len(set(members)) == len(members) == 207
    assert all(list(group) == sorted(group) for group in groups.values())
    # ImageNet's dogs are 151 to 268, its birds 7 to 24, 80 to 100 and 127 to 146.
    assert set(groups["dog"]) <= set(range(151, 269))
    assert set(groups["bird"]) <= {*range(7, 25), *range(80, 101), *range(127, 147)}


@pytest.mark.parametrize("part", ["edges", "filled-silhouettes"])
def test_drawings_in_folders_of_the_groups_have_their_classes(shared_data, part):
    drawings = as_image_set(shared_data / "imagenet16-edges-silhouettes" / part)
    assert drawings.classes == tuple(class_groups("imagenet16"))
    assert np.bincount(drawings.labels).tolist() == [10] * 16


def test_photographs_of_imagenet_are_grouped_by_their_number(shared_data):
    folder = shared_data / "imagenet-val-2000"
    photos = as_image_set(folder / "images", labels=folder / "labels.csv")
    made = grouped(photos, class_groups("imagenet16"))
    assert len(made) == 2 * 207  # two of every class
    assert np.bincount(made.labels)[made.classes.index("dog")] == 218
