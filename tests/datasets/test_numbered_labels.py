"""Labels by number, beside images that have names of classes."""

from __future__ import annotations

import numpy as np
import pytest
from exact_model import exact
from stored_images import draw_images, write_images

from shiftcal.datasets import as_image_set
from shiftcal.datasets.arrays import ArrayImages
from shiftcal.errors import InputError
from shiftcal.scoring import score


@pytest.fixture
def folder(tmp_path):
    """Two classes, of a model's four."""
    write_images(
        tmp_path / "images", draw_images(3, 12, 10), ["cat/0.png", "cat/1.png", "dog/0.png"]
    )
    return tmp_path / "images"


@pytest.mark.parametrize("kind", ["txt", "csv", "npy"])
def test_columns_from_a_file_take_the_place_of_the_folders_names(folder, kind):
    file = folder.parent / f"labels.{kind}"
    if kind == "npy":
        np.save(file, [3, 3, 1])
    else:
        file.write_text(("label\n" if kind == "csv" else "") + "3\n3\n1\n")
    images = as_image_set(folder, labels=file)
    assert images.labels.tolist() == [3, 3, 1]
    assert images.classes is None
    for given in (file, [3, 3, 1]):
        assert score(exact(), folder, given).labels.tolist() == [3, 3, 1]


def test_without_them_the_folders_cannot_be_told_apart_for_the_model(folder):
    with pytest.raises(InputError, match="which is which cannot be told"):
        score(exact(), folder)


def test_names_stay_where_labels_are_names_or_names_are_given(folder):
    assert as_image_set(folder, labels=["dog", "cat", "dog"]).classes == ("cat", "dog")
    named = as_image_set(folder, labels=[2, 0, 1], classes=["a", "b", "c"])
    assert named.classes == ("a", "b", "c")
    with pytest.raises(InputError, match="'cow' is not"):
        as_image_set(folder, labels=["dog", "cow", "dog"])
    assert as_image_set(folder).relabelled(None).classes == ("cat", "dog")


def test_text_that_is_the_name_of_a_class_is_no_number():
    held = ArrayImages(draw_images(3), labels=[0, 1, 2], classes=["10", "7", "2"])
    other = held.relabelled(["2", "2", "10"])
    assert other.labels.tolist() == [2, 2, 0]
    assert other.classes == ("10", "7", "2")
    with pytest.raises(InputError, match="could be meant as a name or as an index"):
        held.relabelled(["1", "1", "0"])
    assert held.relabelled([1, 1, 0]).classes is None
