"""CIFAR-10: its batches, and files that only look like them."""

from __future__ import annotations

import hashlib
import os
import pickle

import numpy as np
import pytest
from cifar_copies import NAMES, batch_dict, drawn, publish, write_python_batches
from hostile_files import Trap, trap

from shiftcal.datasets.catalog.cifar import cifar10
from shiftcal.errors import FileError

TEST = (drawn(4, 1), [3, 8, 0, 9])
TRAIN = [(drawn(2, 10 + i), [i, 9 - i]) for i in range(5)]


def test_batches_are_read_as_they_were_stored_and_no_pixels_are_sent(tmp_path, monkeypatch):
    write_python_batches(tmp_path / "cifar-10-batches-py", TEST, TRAIN)
    publish(monkeypatch, tmp_path)
    images = cifar10(tmp_path)
    assert (len(images), images.name, images.classes) == (4, "CIFAR-10 test", tuple(NAMES))
    assert images.labels.tolist() == [3, 8, 0, 9]
    np.testing.assert_array_equal(images.read([0, 1, 2, 3]).images, TEST[0])
    train = cifar10(tmp_path / "cifar-10-batches-py", split="train")
    assert train.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
    sent = pickle.dumps(train)
    assert len(sent) < 3072 * len(train) / 4
    mixed = [9, 0, 5, 5, 2]
    everything = np.concatenate([images for images, _ in TRAIN])
    np.testing.assert_array_equal(pickle.loads(sent).read(mixed).images, everything[mixed])
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(FileError, match="has no data_batch_3 of CIFAR-10"):
        cifar10(tmp_path, split="train")


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
