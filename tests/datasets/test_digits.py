"""MNIST, MNIST-M and USPS."""

from __future__ import annotations

import bz2
import gzip
import struct

import numpy as np
import pytest
from dataset_copies import write_pictures

from shiftcal.datasets import load
from shiftcal.datasets.catalog.digits import MNIST, USPS, mnist, mnist_m, usps
from shiftcal.errors import FileError, UnknownName

LABELS = [7, 2, 1, 0, 9]


def idx(array):
    """An idx file, by the description of the format."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def pixels():
    return np.random.default_rng(3).integers(0, 256, (5, 28, 28), np.uint8)


def write(folder, pixels, *, packed=False, before=""):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in {"images-idx3": pixels, "labels-idx1": np.array(LABELS, np.uint8)}.items():
        file = folder / f"{before}t10k-{name}-ubyte{'.gz' if packed else ''}"
        file.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    return folder


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("place", "before"), [("", ""), ("", "mnist_"), ("MNIST/raw", "")])
def test_images_and_labels_come_back(tmp_path, pixels, packed, place, before):
    write(tmp_path / place, pixels, packed=packed, before=before)
    images = mnist(tmp_path, split="test")
    assert images.labels.tolist() == LABELS
    assert images.classes == tuple("0123456789")
    np.testing.assert_array_equal(images.read([0, 1, 2]).images, np.stack([pixels[:3]] * 3, -1))
    np.testing.assert_array_equal(images.read([4, 0]).images[..., 1], pixels[[4, 0]])


def test_the_real_files_are_complete(shared_data):
    root = shared_data / "digits"
    train, test = mnist(root, split="train"), mnist(root, split="test")
    assert [len(train), len(test)] == list(MNIST.counts.values()) == [60000, 10000]
    # Counts of the digits 0 to 9 in the test set.
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(test.labels).tolist() == counts
    # The mean that everybody normalises by is 0.1307, to four digits.
    assert round(float(train.read(range(60_000)).images[..., 0].mean()) / 255, 4) == 0.1307


def test_a_missing_file_is_named(tmp_path, pixels):
    with pytest.raises(FileError, match="must hold t10k-images-idx3-ubyte or"):
        mnist(tmp_path)
    write(tmp_path, pixels)
    with pytest.raises(FileError, match="must hold train-images-idx3-ubyte"):
        mnist(tmp_path, split="train")
    with pytest.raises(UnknownName, match="split must be one of 'train', 'test'"):
        mnist(tmp_path, split="val")


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


ROWS = np.random.default_rng(5).uniform(-1, 1, (4, 256)).round(4)
DIGITS = [6, 0, 9, 3]


def text(rows=ROWS, digits=DIGITS):
    """Lines as in the official files: the label is the digit plus 1, every value is written."""
    lines = [
        f"{digit + 1} " + " ".join(f"{i}:{value:g}" for i, value in enumerate(row, 1)) + " \n"
        for row, digit in zip(rows, digits, strict=True)
    ]
    return "".join(lines).encode()


def test_values_from_minus_one_to_one_become_bytes(tmp_path):
    (tmp_path / "usps.t.bz2").write_bytes(bz2.compress(text()))
    images = usps(tmp_path)
    assert images.labels.tolist() == DIGITS
    expected = np.rint((ROWS + 1) / 2 * 255).reshape(4, 16, 16)
    # Values are kept in single precision: one that falls between two bytes may go either way.
    assert np.abs(images.read([0, 1, 2, 3]).images[..., 0].astype(int) - expected).max() <= 1
    assert (images.read([0, 1, 2, 3]).images[..., 0] != expected).mean() < 0.001


def test_the_real_arrays_have_the_published_counts(shared_data):
    train, test = (usps(shared_data / "digits", split=split) for split in ("train", "test"))
    assert [len(train), len(test)] == list(USPS.counts.values()) == [7291, 2007]
    # Counts of the digits 0 to 9 that Hastie, Tibshirani and Friedman publish with the data.
    counts = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(train.labels).tolist() == counts
    counts = [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert np.bincount(test.labels).tolist() == counts
    assert train[0].shape == (16, 16, 3)
    with np.load(shared_data / "digits" / "usps.npz") as stored:
        expected = np.rint(stored["test_data"] * 255).reshape(-1, 16, 16)
    np.testing.assert_array_equal(test.read(np.arange(2007)).images[..., 0], expected)


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("mnist", "t10k-images-idx3-ubyte", b""),
        ("mnist", "t10k-images-idx3-ubyte", b"garbage"),
        ("mnist", "t10k-images-idx3-ubyte", idx(np.zeros((2, 28, 28), np.uint8))[:-1]),
        ("mnist", "t10k-images-idx3-ubyte.gz", b"garbage"),
        ("usps", "usps.t.bz2", b"garbage"),
        ("usps", "usps.t.bz2", bz2.compress(b"1 1:0.5\n" * 100)[:-9]),
        ("usps", "usps.t.bz2", bz2.compress(b"")),
        ("usps", "usps.t.bz2", bz2.compress(b"0 1:0.5\n")),
        ("usps", "usps.t.bz2", bz2.compress(b"1 257:0.5\n")),
        ("usps", "usps.t.bz2", bz2.compress(b"1 1:2\n")),
        ("usps", "usps.t.bz2", bz2.compress(b"1 1:nan\n")),
        ("usps", "usps.npz", b"PK garbage"),
        ("mnist-m", "mnist_m_test_labels.txt", b"0.png seven\n"),
        ("mnist-m", "mnist_m_test_labels.txt", b""),
    ],
)
def test_damaged_files_are_named(tmp_path, name, file, content):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(FileError, match=file.partition(".")[0]):
        load(name, tmp_path)
