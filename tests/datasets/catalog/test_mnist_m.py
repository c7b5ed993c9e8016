"""MNIST-M: files with a list of labels, arrays, and the real images in the real layout."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from PIL import Image
from tiny_pictures import write_pictures

from shiftcal.datasets.catalog.mnist_m import ABOUT, mnist_m
from shiftcal.errors import FileError, InputWarning, UnknownName


@pytest.fixture
def copy(tmp_path):
    write_pictures(tmp_path / "mnist_m" / "mnist_m_test", [f"0000000{i}.png" for i in range(3)])
    lines = "00000002.png 5 \n00000000.png 7\n00000001.png 0\n"
    (tmp_path / "mnist_m" / "mnist_m_test_labels.txt").write_text(lines)
    return tmp_path / "mnist_m"


def test_the_list_gives_the_order_and_the_labels(copy):
    for root in (copy, copy.parent):
        images = mnist_m(root, split="test")
        assert images.labels.tolist() == [5, 7, 0]
        assert images.ids([0, 1, 2]) == ["00000002.png", "00000000.png", "00000001.png"]
        assert [int(images[i].max()) for i in range(3)] == [20, 0, 10]
        assert images.classes == tuple("0123456789")


def test_real_images_come_back_from_the_real_layout(tmp_path, shared_data):
    mosaic = np.asarray(Image.open(shared_data / "digits" / "mnistm_test.webp").convert("RGB"))
    tiles = mosaic[: 2 * 32].reshape(2, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4)
    tiles = tiles.reshape(200, 32, 32, 3)
    digits = np.load(shared_data / "digits" / "mnistm_test_labels.npy")[:200]
    (tmp_path / "mnist_m_test").mkdir()
    lines = []
    for i, (tile, digit) in enumerate(zip(tiles, digits, strict=True)):
        Image.fromarray(tile).save(tmp_path / "mnist_m_test" / f"{i:08d}.png")
        lines.append(f"{i:08d}.png {digit}\n")
    (tmp_path / "mnist_m_test_labels.txt").write_text("".join(lines))
    images = mnist_m(tmp_path)
    np.testing.assert_array_equal(images.labels, digits)
    assert images.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    np.testing.assert_array_equal(images.read(np.arange(200)).images, tiles)


@pytest.mark.parametrize("start", ["mnist_m", "mnistm"])
def test_arrays_are_mapped_and_not_sent_to_other_processes(tmp_path, start):
    pixels = np.random.default_rng(6).integers(0, 256, (50, 32, 28, 3), np.uint8)
    np.save(tmp_path / f"{start}_train.npy", pixels)
    np.save(tmp_path / f"{start}_train_labels.npy", np.arange(50) % 10)
    images = mnist_m(tmp_path, split="train")
    assert isinstance(images._pixels, np.memmap)
    assert images.labels[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    sent = pickle.dumps(images)
    assert len(sent) < pixels.nbytes / 20
    np.testing.assert_array_equal(pickle.loads(sent).read([3, 1]).images, pixels[[3, 1]])


def test_arrays_of_something_else_are_refused(tmp_path):
    labels, pixels = tmp_path / "mnist_m_test_labels.npy", tmp_path / "mnist_m_test.npy"
    np.save(pixels, np.zeros((4, 28, 28, 3), np.uint8))
    with pytest.raises(FileError, match=r"mnist_m_test_labels\.npy is missing"):
        mnist_m(tmp_path)
    np.save(labels, np.zeros(3, np.int64))
    with pytest.raises(FileError, match="4 images and 3 labels"):
        mnist_m(tmp_path)
    np.save(labels, np.array([0, 1, 2, 10]))
    with pytest.raises(FileError, match="class indices from 0 to 9"):
        mnist_m(tmp_path)
    np.save(pixels, np.zeros((4, 28, 28, 3), np.float32))
    with pytest.raises(FileError, match="must hold images, uint8"):
        mnist_m(tmp_path)
    np.save(pixels, np.zeros((4, 28, 28, 3), np.uint8))
    pixels.write_bytes(pixels.read_bytes()[:-1])
    with pytest.raises(FileError, match="cut short"):
        mnist_m(tmp_path)


def test_a_missing_split_or_list_is_named(copy):
    with pytest.raises(FileError, match=r"no folder mnist_m_train and no file mnist_m_train\.npy"):
        mnist_m(copy, split="train")
    (copy / "mnist_m_test_labels.txt").unlink()
    with pytest.raises(FileError, match=r"mnist_m_test_labels\.txt is missing"):
        mnist_m(copy)
    with pytest.raises(UnknownName, match="split must be one of 'train', 'test'"):
        mnist_m(copy, split="val")


@pytest.mark.parametrize("path", ["../mnist_m_test_labels.txt", "/etc/passwd", "a/../../b.png"])
def test_a_list_that_leads_out_of_the_folder_is_refused(copy, path):
    (copy / "mnist_m_test_labels.txt").write_text(f"00000000.png 7\n{path} 1\n")
    with pytest.raises(FileError, match="line 2, must name a file below the folder"):
        mnist_m(copy)


def test_a_label_that_is_no_digit_is_refused(copy):
    (copy / "mnist_m_test_labels.txt").write_text("00000000.png 10\n")
    with pytest.raises(FileError, match="labels from 0 to 9; got 10"):
        mnist_m(copy)


def test_listed_images_that_are_not_there_are_left_out_with_a_warning(copy):
    (copy / "mnist_m_test" / "00000000.png").unlink()
    with pytest.warns(InputWarning, match=r"1 of 3 images listed .*the first is 00000000\.png"):
        images = mnist_m(copy)
    assert images.labels.tolist() == [5, 0]


def test_a_damaged_image_is_told_when_it_is_read(copy):
    (copy / "mnist_m_test" / "00000000.png").write_bytes(b"\x89PNG garbage")
    batch = mnist_m(copy).read([0, 1, 2])
    assert batch.indices.tolist() == [0, 2]
    assert "00000000.png" in batch.bad[1]


def test_it_is_fetched_by_hand():
    assert [part.n for part in ABOUT.parts] == [59001, 9001]
    assert not ABOUT.downloads
    assert "859df31c91afe82e80e5012ba928f279" in ABOUT.by_hand
