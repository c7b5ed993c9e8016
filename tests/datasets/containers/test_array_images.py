"""Images in one array: mapped ones stay in their file, and go to other processes as its name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images

from shiftcal.datasets.arrays import ArrayImages
from shiftcal.errors import FileError, InputError


@pytest.fixture
def mapped(tmp_path):
    images = draw_images(50)
    np.save(tmp_path / "images.npy", images)
    return np.load(tmp_path / "images.npy", mmap_mode="r")


VIEWS = {
    "whole": lambda x: x,
    "part": lambda x: x[10:20],
    "every third": lambda x: x[1::3],
    "backwards": lambda x: x[::-1],
    "one channel": lambda x: x[..., 1],
    "one grey channel": lambda x: x[..., 1:2],
    "cut": lambda x: x[:, 1:, :8],
    "one image": lambda x: x[7],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_mapped_file_is_sent_by_name_and_read_the_same(mapped, view):
    held = ArrayImages(VIEWS[view](mapped))
    sent = pickle.dumps(held)
    assert len(sent) < 1000  # the 50 images are 14,850 bytes
    again = pickle.loads(sent)
    assert len(pickle.dumps(again)) == len(sent)
    np.testing.assert_array_equal(again.read(range(len(held))).images, [x for x in held])


def test_a_file_in_fortran_order_is_sent_by_name_too(tmp_path):
    images = np.asfortranarray(draw_images(5))
    np.save(tmp_path / "f.npy", images)
    held = ArrayImages(np.load(tmp_path / "f.npy", mmap_mode="r"))
    again = pickle.loads(pickle.dumps(held))
    np.testing.assert_array_equal(again.read(range(5)).images, images)


def test_pixels_changed_in_memory_are_sent_themselves(tmp_path):
    np.save(tmp_path / "images.npy", draw_images(4))
    private = np.load(tmp_path / "images.npy", mmap_mode="c")
    private[0] = 7
    again = pickle.loads(pickle.dumps(ArrayImages(private)))
    assert (again[0] == 7).all()


def test_a_file_that_changed_or_went_is_said(mapped, tmp_path):
    sent = pickle.dumps(ArrayImages(mapped))
    np.save(tmp_path / "other.npy", draw_images(3))
    (tmp_path / "other.npy").replace(tmp_path / "images.npy")
    with pytest.raises(FileError, match=r"images.npy has changed since the set was made"):
        pickle.loads(sent)
    (tmp_path / "images.npy").unlink()
    with pytest.raises(FileError, match=r"images.npy could not be opened: No such file"):
        pickle.loads(sent)


def test_a_stretch_of_the_array_is_not_copied_and_the_array_is_never_changed():
    images = draw_images(6)
    before = images.copy()
    batch = ArrayImages(images).read([2, 3, 4])
    assert np.shares_memory(batch.images, images)
    np.testing.assert_array_equal(ArrayImages(images).read([4, 2]).images, before[[4, 2]])
    np.testing.assert_array_equal(images, before)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 3, 16, 16), np.uint8), "channels last"),
        (np.zeros((2, 16, 16, 3)), "must be uint8"),
        (np.zeros((0, 16, 16, 3), np.uint8), "at least one image; got none"),
        (np.zeros((2, 4, 4, 3), np.uint8), "at least 8 pixels"),
    ],
)
def test_arrays_that_are_no_images_are_refused(images, words):
    with pytest.raises(InputError, match=words):
        ArrayImages(images)
