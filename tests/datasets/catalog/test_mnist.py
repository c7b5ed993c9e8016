"""MNIST: the real files, the spellings of their names, and hostile idx files."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import struct
import tracemalloc

import numpy as np
import pytest

from shiftcal.datasets.catalog.mnist import ABOUT, mnist
from shiftcal.errors import FileError, InputError, UnknownName

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


@pytest.mark.parametrize("packed", [False, True])
def test_three_images_are_not_taken_for_one_in_colour(tmp_path, pixels, packed):
    images = mnist(write(tmp_path, pixels[:3], labels=LABELS[:3], packed=packed))
    assert [batch.images.shape for batch in images.batches(3)] == [(3, 28, 28, 3)]


def test_the_layout_of_torchvision_is_found(tmp_path, pixels):
    write(tmp_path / "MNIST" / "raw", pixels)
    assert len(mnist(tmp_path)) == 5


@pytest.mark.parametrize("packed", [False, True])
def test_other_processes_are_sent_the_path_and_not_the_pixels(tmp_path, packed):
    many = np.random.default_rng(4).integers(0, 256, (200, 28, 28), np.uint8)
    images = mnist(write(tmp_path, many, labels=[1] * 200, packed=packed))
    sent = pickle.dumps(images)
    assert len(sent) < many.nbytes / 20
    np.testing.assert_array_equal(pickle.loads(sent)[199][..., 0], many[199])


def test_a_file_that_changed_in_between_is_noticed(tmp_path, pixels):
    sent = pickle.dumps(mnist(write(tmp_path, pixels)))
    write(tmp_path, pixels[:4])
    with pytest.raises(FileError, match="had 5 images when it was opened and has 4 now"):
        pickle.loads(sent)


def test_plain_files_are_mapped(tmp_path, pixels):
    assert isinstance(mnist(write(tmp_path, pixels))._pixels, np.memmap)


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
    assert round(float(train._pixels.mean()) / 255, 4) == 0.1307


def test_it_is_fetched_with_checksums_and_stays_packed():
    assert {file.file for file in ABOUT.downloads} == {f"{name}.gz" for name in UNPACKED}
    assert all(len(file.digest) == 32 and not file.unpack for file in ABOUT.downloads)


def test_a_missing_file_is_named(tmp_path, pixels):
    with pytest.raises(FileError, match=r"holds no t10k-images-idx3-ubyte, with or without \.gz"):
        mnist(tmp_path)
    write(tmp_path, pixels)
    with pytest.raises(FileError, match="holds no train-images-idx3-ubyte"):
        mnist(tmp_path, split="train")
    with pytest.raises(UnknownName, match="split must be one of 'train', 'test'"):
        mnist(tmp_path, split="val")


@pytest.mark.parametrize("packed", [False, True])
def test_a_header_that_promises_terabytes_takes_no_memory(tmp_path, pixels, packed):
    write(tmp_path, pixels, packed=packed)
    hostile = struct.pack(">BBBB3I", 0, 0, 8, 3, 2**32 - 1, 28, 28) + bytes(100)
    file = tmp_path / f"t10k-images-idx3-ubyte{'.gz' if packed else ''}"
    file.write_bytes(gzip.compress(hostile) if packed else hostile)
    words = "promises 3,367,254,359,280 bytes and 100" if not packed else "holds 3,367,254,359,280"
    tracemalloc.start()
    with pytest.raises(FileError, match=words):
        mnist(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


def test_a_promise_within_the_limit_takes_no_memory_before_it_is_kept(tmp_path, pixels):
    write(tmp_path, pixels, packed=True)
    hostile = struct.pack(">BBBB3I", 0, 0, 8, 3, 1_000_000, 28, 28) + bytes(100)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(hostile))
    tracemalloc.start()
    with pytest.raises(FileError, match="promises 784,000,000 bytes and 100 follow"):
        mnist(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


def test_a_bomb_is_not_unpacked_further_than_its_header_says(tmp_path, pixels):
    write(tmp_path, pixels, packed=True)
    bomb = gzip.compress(idx(pixels) + bytes(200_000_000), compresslevel=1)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(bomb)
    tracemalloc.start()
    with pytest.raises(FileError, match="holds more than the 3,920 bytes that its header promises"):
        mnist(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


def test_a_truncated_archive_is_refused(tmp_path, pixels):
    write(tmp_path, pixels, packed=True)
    file = tmp_path / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(FileError, match=r"damaged or cut short .*Fetch it again"):
        mnist(tmp_path)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x1f\x8b\x08garbage and more of it"])
def test_an_archive_of_garbage_is_refused(tmp_path, pixels, content):
    write(tmp_path, pixels, packed=True)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(content)
    with pytest.raises(FileError, match=r"t10k-images-idx3-ubyte\.gz (cannot|must)"):
        mnist(tmp_path)


def test_a_plain_file_that_is_cut_short_or_too_long_is_refused(tmp_path, pixels):
    file = write(tmp_path, pixels) / "t10k-images-idx3-ubyte"
    file.write_bytes(idx(pixels)[:-1])
    with pytest.raises(FileError, match="promises 3,920 bytes and 3,919 follow"):
        mnist(tmp_path)
    file.write_bytes(idx(pixels) + b"x")
    with pytest.raises(FileError, match="holds more than the 3,920 bytes"):
        mnist(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "got nothing"),
        (idx(np.zeros(5, np.uint8)), "in 3 dimensions.*got 00 00 08 01"),
        (b"\0\0\x0d" + idx(np.zeros((5, 28, 28), np.uint8))[3:], "got 00 00 0d 03"),
        (idx(np.zeros((5, 28, 27), np.uint8)), r"shape \(28, 28\); got \(28, 27\)"),
        (idx(np.zeros((0, 28, 28), np.uint8)), "holds nothing"),
        (b"\0\0\x08\x03\0\0", "got 00 00 08 03"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, pixels, content, words):
    (write(tmp_path, pixels) / "t10k-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(FileError, match=words):
        mnist(tmp_path)


def test_labels_that_do_not_go_with_the_images_are_refused(tmp_path, pixels):
    with pytest.raises(FileError, match="5 images and 4 labels"):
        mnist(write(tmp_path, pixels, labels=LABELS[:4]))
    with pytest.raises(InputError, match="MNIST test: labels"):
        mnist(write(tmp_path, pixels, labels=[0, 1, 2, 3, 10]))
