"""MNIST: the real files, the spellings of their names, and hostile idx files."""

from __future__ import annotations

import gzip
import hashlib
import struct

import numpy as np
import pytest

from shiftcal.datasets.catalog.digits import MNIST as ABOUT
from shiftcal.datasets.catalog.digits import mnist
from shiftcal.errors import FileError, UnknownName

LABELS = [7, 2, 1, 0, 9]
# Checksums of the unpacked files, as others publish them: archives differ by the packer.
UNPACKED = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def idx(array):
    """An idx file, by the description of the format."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def pixels():
    return np.random.default_rng(3).integers(0, 256, (5, 28, 28), np.uint8)


def write(folder, pixels, *, dash="-", labels=LABELS, packed=False, before=""):
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"images{dash}idx3": pixels, f"labels{dash}idx1": np.array(labels, np.uint8)}
    for name, array in files.items():
        file = folder / f"{before}t10k-{name}-ubyte{'.gz' if packed else ''}"
        file.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    return folder


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dash", ["-", "."])
@pytest.mark.parametrize("before", ["", "mnist_"])
def test_images_and_labels_come_back_whatever_the_spelling(tmp_path, pixels, packed, dash, before):
    write(tmp_path, pixels, packed=packed, dash=dash, before=before)
    images = mnist(tmp_path, split="test")
    assert images.labels.tolist() == LABELS
    assert images.classes == tuple("0123456789")
    np.testing.assert_array_equal(images.read([0, 1, 2]).images, np.stack([pixels[:3]] * 3, -1))
    np.testing.assert_array_equal(images.read([4, 0]).images[..., 1], pixels[[4, 0]])
    np.testing.assert_array_equal(images[3][..., 2], pixels[3])


def test_the_layout_of_torchvision_is_found(tmp_path, pixels):
    write(tmp_path / "MNIST" / "raw", pixels)
    assert len(mnist(tmp_path)) == 5


def test_the_real_files_are_complete(shared_data):
    root = shared_data / "digits"
    for name, digest in UNPACKED.items():
        content = gzip.decompress((root / f"mnist_{name}.gz").read_bytes())
        assert hashlib.md5(content).hexdigest() == digest
    train, test = mnist(root, split="train"), mnist(root, split="test")
    assert [len(train), len(test)] == [part.n for part in ABOUT.parts] == [60000, 10000]
    # Counts of the digits 0 to 9 in the test set.
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(test.labels).tolist() == counts
    # The mean that everybody normalises by is 0.1307, to four digits.
    assert round(float(train.read(range(60_000)).images[..., 0].mean()) / 255, 4) == 0.1307


def test_a_missing_file_is_named(tmp_path, pixels):
    with pytest.raises(FileError, match=r"holds no t10k-images-idx3-ubyte, with or without \.gz"):
        mnist(tmp_path)
    write(tmp_path, pixels)
    with pytest.raises(FileError, match="holds no train-images-idx3-ubyte"):
        mnist(tmp_path, split="train")
    with pytest.raises(UnknownName, match="split must be one of 'train', 'test'"):
        mnist(tmp_path, split="val")
