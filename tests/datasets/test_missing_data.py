"""What is not there at all, told from what is there and not as it must be."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from stored_images import draw_images, write_images

from shiftcal import datasets
from shiftcal.datasets import load
from shiftcal.datasets.fetch import check_data_set
from shiftcal.datasets.image_files import FileImages, find_images
from shiftcal.datasets.labels import read_labels
from shiftcal.datasets.tar import TarImages
from shiftcal.errors import FileError, InputError, MissingData


def test_it_is_a_file_error_and_survives_the_way_to_another_process():
    assert issubclass(MissingData, FileError)
    assert issubclass(MissingData, InputError)
    error = pickle.loads(pickle.dumps(MissingData("x is not there.")))
    assert type(error) is MissingData
    assert error.args == ("x is not there.",)


@pytest.mark.parametrize("name", datasets.names())
def test_every_loader_says_so_of_an_empty_folder_and_of_none(name, tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(MissingData, match=str(folder)):
            load(name, folder)


def test_files_and_lists_that_are_not_there(tmp_path):
    with pytest.raises(MissingData, match="is not a folder"):
        find_images(tmp_path / "none")
    with pytest.raises(MissingData, match="holds no images"):
        find_images(tmp_path)
    with pytest.raises(MissingData, match="does not exist"):
        read_labels(tmp_path / "none.txt")
    with pytest.raises(MissingData, match="cannot be read as an image"):
        FileImages(tmp_path, ["none.png"], name="x")[0]


def test_some_of_several_files_are_not_nothing(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"")
    with pytest.raises(FileError, match=r"b\.tar does not exist") as caught:
        TarImages([tmp_path / "a.tar", tmp_path / "b.tar"])
    assert type(caught.value) is FileError


def wrong(name, root, part):
    """That a part is wrong, and what is said of it."""
    (found,) = check_data_set(name, root, parts=[part]).parts
    assert found.state == "wrong", found.problems
    return found.problems[0]


def test_images_without_their_labels_are_wrong_not_missing(tmp_path):
    np.save(tmp_path / "cifar10.1_v6_data.npy", draw_images(3, 32, 32))
    assert "v6_labels.npy is missing" in wrong("cifar10-1", tmp_path, "v6")
    np.save(tmp_path / "mnist_m_test.npy", draw_images(3, 28, 28))
    assert "mnist_m_test_labels.npy is missing" in wrong("mnist-m", tmp_path, "test")
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(b"x")
    assert "holds no t10k-labels-idx1-ubyte" in wrong("mnist", tmp_path, "test")


def test_labels_without_their_images_are_wrong_not_missing(tmp_path):
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(b"x")
    assert "holds no t10k-images-idx3-ubyte" in wrong("mnist", tmp_path, "test")


def test_some_severities_of_a_corruption_are_wrong_not_missing(tmp_path):
    (tmp_path / "fog").mkdir()
    np.save(tmp_path / "fog" / "2.npy", draw_images(3, 32, 32))
    (tmp_path / "corrupted.json").write_text("{}")
    assert "1.npy is missing" in wrong("cifar10-c", tmp_path, "fog")
    for level in range(1, 6):
        (tmp_path / "snow" / str(level)).mkdir(parents=True)
    assert "holds no images" in wrong("imagenet-c", tmp_path, "snow")


def test_some_of_what_is_asked_for_together_is_not_nothing(tmp_path):
    np.save(tmp_path / "fog.npy", draw_images(5, 32, 32))
    write_images(tmp_path / "pacs" / "photo" / "dog", draw_images(1), ["1.png"])
    for name, root, options in (
        ("cifar10-c", tmp_path, {"corruption": "fog,snow"}),
        ("pacs", tmp_path / "pacs", {}),
    ):
        with pytest.raises(FileError, match="has no") as caught:
            load(name, root, **options)
        assert type(caught.value) is FileError
    with pytest.raises(MissingData, match="has no 'snow'"):
        load("cifar10-c", tmp_path, corruption="snow")
    with pytest.raises(MissingData, match="has no folder 'sketch'"):
        load("pacs", tmp_path / "pacs", domain="sketch")
