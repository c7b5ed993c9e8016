"""CIFAR-10: python and binary batches, and files that only look like them."""

from __future__ import annotations

import hashlib
import os
import pickle

import numpy as np
import pytest
from cifar_copies import (
    NAMES,
    batch_dict,
    drawn,
    write_binary_batches,
    write_python_batches,
)
from hostile_files import Trap, trap

from shiftcal.datasets.catalog.cifar import PUBLISHED, cifar10
from shiftcal.errors import FileError

TEST = (drawn(4, 1), [3, 8, 0, 9])
TRAIN = [(drawn(2, 10 + i), [i, 9 - i]) for i in range(5)]
WRITERS = {"py": write_python_batches, "bin": write_binary_batches}


def publish(monkeypatch, folder):
    """Let the python batches of a folder be those that were published."""
    for file in folder.rglob("*_batch*"):
        digest = hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()
        monkeypatch.setitem(PUBLISHED, file.name, digest)


@pytest.fixture(params=["py", "bin"])
def copy(request, tmp_path, monkeypatch):
    """The folder above a miniature copy, in both forms."""
    WRITERS[request.param](tmp_path / f"cifar-10-batches-{request.param}", TEST, TRAIN)
    publish(monkeypatch, tmp_path)
    return tmp_path


def test_images_labels_and_names_are_those_that_were_stored(copy):
    images = cifar10(copy)
    assert (len(images), images.name, images.classes) == (4, "CIFAR-10 test", tuple(NAMES))
    assert images.labels.tolist() == [3, 8, 0, 9]
    np.testing.assert_array_equal(images.read([0, 1, 2, 3]).images, TEST[0])
    np.testing.assert_array_equal(images[2], TEST[0][2])


def test_training_batches_follow_one_another_and_can_be_read_in_any_order(copy):
    images = cifar10(copy, split="train")
    assert images.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    everything = np.concatenate([images for images, _ in TRAIN])
    mixed = [9, 0, 5, 5, 2]
    np.testing.assert_array_equal(images.read(mixed).images, everything[mixed])


def test_the_root_may_be_the_folder_of_the_batches_itself(copy):
    (inner,) = copy.iterdir()
    assert cifar10(inner).digest([0, 3]) == cifar10(str(copy)).digest([0, 3])


def test_python_batches_are_preferred_and_both_say_the_same(tmp_path, monkeypatch):
    write_binary_batches(tmp_path / "cifar-10-batches-bin", TEST)
    binary = cifar10(tmp_path)
    write_python_batches(tmp_path / "cifar-10-batches-py", TEST)
    publish(monkeypatch, tmp_path)
    python = cifar10(tmp_path)
    assert python.digest(range(4)) == binary.digest(range(4))


def test_another_process_is_sent_no_pixels(copy):
    images = cifar10(copy, split="train")
    sent = pickle.dumps(images)
    assert len(sent) < 3072 * len(images) / 4
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.read([7, 1]).images, images.read([7, 1]).images)
    assert again.labels.tolist() == images.labels.tolist()


@pytest.mark.parametrize("change", ["hostile", "cut", "empty", "large"])
def test_a_python_batch_that_is_not_the_published_one_is_not_opened(tmp_path, change):
    write_python_batches(tmp_path / "p", TEST)  # not published either
    file, mark = tmp_path / "p" / "test_batch", tmp_path / "mark"
    if change == "hostile":
        file.write_bytes(trap(mark))
    elif change == "cut":
        file.write_bytes(file.read_bytes()[:-1])
    elif change == "empty":
        file.write_bytes(b"")
    else:
        os.truncate(file, 1 << 40)
    with pytest.raises(FileError, match=r"test_batch must be the published file.*was not opened"):
        cifar10(tmp_path / "p")
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_even_with_the_right_checksum_a_name_that_no_batch_needs_is_refused(
    tmp_path, monkeypatch, protocol
):
    file, mark = tmp_path / "test_batch", tmp_path / "mark"
    file.write_bytes(pickle.dumps({**batch_dict(*TEST), "extra": Trap(mark)}, protocol))
    publish(monkeypatch, tmp_path)
    with pytest.raises(FileError, match=r"test_batch could not be read: it asks for \S+, which no"):
        cifar10(tmp_path)
    assert not mark.exists()
    pickle.loads(file.read_bytes())
    assert mark.exists()  # plain pickle would have run it


def test_the_real_test_set_in_its_real_form_is_itself(shared_data, tmp_path, monkeypatch):
    from PIL import Image

    mosaic = np.asarray(Image.open(shared_data / "cifar10" / "test.webp").convert("RGB"))
    tiles = mosaic.reshape(100, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
    with np.load(shared_data / "cifar10" / "labels.npz") as held:
        labels = held["test"].tolist()
    write_python_batches(tmp_path / "cifar-10-batches-py", (tiles, labels))
    # The size of the published file but for its shorter and longer file names.
    assert abs((tmp_path / "cifar-10-batches-py/test_batch").stat().st_size - 31_035_526) < 200_000
    publish(monkeypatch, tmp_path)
    images = cifar10(tmp_path)
    assert np.bincount(images.labels).tolist() == [1000] * 10
    # What everybody knows of the first ten test images.
    first = [images.classes[label] for label in images.labels[:10]]
    assert first[:5] == ["cat", "ship", "ship", "airplane", "frog"]
    assert first[5:] == ["frog", "automobile", "frog", "cat", "automobile"]
    digest = hashlib.sha256()
    for batch in images.batches(1000):
        digest.update(batch.images.tobytes())
    assert digest.hexdigest() == hashlib.sha256(tiles.tobytes()).hexdigest()
    assert digest.hexdigest() in (shared_data / "cifar10" / "SHA256").read_text()
