"""CIFAR-10.1 from its two arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from cifar_copies import NAMES, drawn

from shiftcal.datasets.catalog.cifar10_1 import ABOUT, cifar10_1
from shiftcal.errors import FileError, UnknownName

IMAGES = drawn(5, 3)
LABELS = np.array([0, 9, 4, 4, 7], np.int32)


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "datasets"
    folder.mkdir()
    np.save(folder / "cifar10.1_v6_data.npy", IMAGES)
    np.save(folder / "cifar10.1_v6_labels.npy", LABELS)
    np.save(folder / "cifar10.1_v4_data.npy", IMAGES[::-1])
    np.save(folder / "cifar10.1_v4_labels.npy", LABELS[::-1])
    return folder


def test_both_versions_are_read_from_the_folder_or_the_one_above(copy):
    images = cifar10_1(copy)
    assert (images.name, images.classes) == ("CIFAR-10.1 v6", tuple(NAMES))
    assert images.labels.tolist() == [0, 9, 4, 4, 7]
    np.testing.assert_array_equal(images.read(range(5)).images, IMAGES)
    older = cifar10_1(copy.parent, version="v4")
    assert older.labels.tolist() == [7, 4, 4, 9, 0]
    np.testing.assert_array_equal(older[0], IMAGES[4])


def test_another_process_is_sent_no_pixels(copy):
    sent = pickle.dumps(cifar10_1(copy))
    assert len(sent) < IMAGES.nbytes / 4
    np.testing.assert_array_equal(pickle.loads(sent)[4], IMAGES[4])


def test_a_file_that_is_cut_short_or_of_another_kind_is_refused(copy):
    data = copy / "cifar10.1_v6_data.npy"
    whole = data.read_bytes()
    data.write_bytes(whole[:-1])
    with pytest.raises(FileError, match=r"v6_data\.npy could not be read.*cut short"):
        cifar10_1(copy)
    data.write_bytes(whole[:70])
    with pytest.raises(FileError, match="could not be read"):
        cifar10_1(copy)
    data.write_bytes(pickle.dumps(IMAGES))
    with pytest.raises(FileError, match=r"is not an \.npy array: it begins with the bytes"):
        cifar10_1(copy)
    data.unlink()
    with pytest.raises(FileError, match=r"v6_data\.npy is missing"):
        cifar10_1(copy)
    data.mkdir()
    with pytest.raises(FileError, match="is not a file"):
        cifar10_1(copy)


def test_arrays_of_python_objects_are_not_unpickled(copy):
    np.save(copy / "cifar10.1_v6_labels.npy", np.array([{}] * 5), allow_pickle=True)
    with pytest.raises(FileError, match="holds Python objects"):
        cifar10_1(copy)


def test_a_header_that_promises_terabytes_is_refused(copy):
    with (copy / "cifar10.1_v6_data.npy").open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (10**9, 32, 32, 3)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"abc")
    with pytest.raises(FileError, match="cut short"):
        cifar10_1(copy)


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("data", IMAGES.astype(np.float32), "must hold images, uint8.*float32"),
        ("data", IMAGES.reshape(5, -1), r"of shape \(5, 3072\)"),
        ("data", IMAGES[:0], "must hold images"),
        ("data", IMAGES[..., 0, :], r"sides of at least 8.*\(5, 32, 3\)"),
        ("data", np.asfortranarray(IMAGES), "Fortran order"),
        ("data", IMAGES[:4], "4 images and 5 labels"),
        ("labels", LABELS[:, None], "one whole number an image"),
        ("labels", LABELS.astype(float), "one whole number an image"),
        ("labels", LABELS + 1, "from 0 to 9; it holds 1 to 10"),
        ("labels", LABELS - 1, "it holds -1 to 8"),
    ],
)
def test_images_and_labels_must_be_such_and_fit(copy, name, array, words):
    np.save(copy / f"cifar10.1_v6_{name}.npy", array)
    with pytest.raises(FileError, match=words):
        cifar10_1(copy)


def test_there_are_two_versions_of_published_sizes(copy):
    with pytest.raises(UnknownName, match="version must be one of 'v6', 'v4'"):
        cifar10_1(copy, version="v5")
    # A header of 128 bytes, 3,072 a picture; and 4 a label.
    sizes = {download.file: download.size for download in ABOUT.downloads}
    for part in ABOUT.parts:
        assert sizes[f"cifar10.1_{part.name}_data.npy"] == 128 + 3072 * part.n
        assert sizes[f"cifar10.1_{part.name}_labels.npy"] == 128 + 4 * part.n
