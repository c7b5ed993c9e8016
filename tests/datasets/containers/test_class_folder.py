"""Class folders: the order of classes, and the folders that are something else."""

from __future__ import annotations

import numpy as np
import pytest
from stored_images import draw_images, write_images

from shiftcal.datasets.image_files import class_folder
from shiftcal.errors import FileError
from shiftcal.files import Framing

IMAGES = draw_images(6)


def test_classes_are_the_sorted_folders_and_files_are_sorted_inside(tmp_path):
    names = ["b/2.png", "b/10.png", "B/x.png", "10/deep/y.png", "9/z.png", "b/.hidden.png"]
    write_images(tmp_path, IMAGES, names)
    (tmp_path / ".cache").mkdir()
    (tmp_path / "b" / "notes.txt").write_text("not an image")
    held = class_folder(tmp_path)
    assert held.classes == ("10", "9", "B", "b")
    assert held.ids(range(5)) == ["10/deep/y.png", "9/z.png", "B/x.png", "b/10.png", "b/2.png"]
    assert held.labels.tolist() == [0, 1, 2, 3, 3]
    np.testing.assert_array_equal(held.read(range(5)).images, IMAGES[[3, 4, 2, 1, 0]])


def test_images_without_class_folders_have_no_labels(tmp_path):
    write_images(tmp_path, IMAGES[:2], ["b.png", "a.png"])
    (tmp_path / "more").mkdir()
    held = class_folder(tmp_path)
    assert held.labels is None
    assert held.classes is None
    assert held.ids([0, 1]) == ["a.png", "b.png"]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileError, match="none is not a folder"):
        class_folder(tmp_path / "none")


def test_one_folder_called_test_is_a_class(tmp_path):
    write_images(tmp_path, IMAGES[:1], ["test/a.png"])
    assert class_folder(tmp_path).classes == ("test",)


def test_a_real_folder_of_photographs_is_read_whole(shared_data):
    held = class_folder(shared_data / "office-caltech10" / "amazon")
    assert len(held) == 958
    assert len(held.classes) == 10
    assert len(set(held.labels.tolist())) == 10
    assert all(
        held.ids([i])[0].startswith(f"{held.classes[held.labels[i]]}/") for i in range(0, 958, 97)
    )
    some = np.arange(0, 958, 97)
    batch = held.read(some, framing=Framing(resize=64, crop=56), threads=2)
    assert batch.images.shape == (10, 56, 56, 3)
    assert not batch.bad
