"""USPS: libsvm text, the .npz form, and hostile files of both."""

from __future__ import annotations

import bz2
import io
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from shiftcal.datasets.catalog import _libsvm_text
from shiftcal.datasets.catalog.usps import ABOUT, usps
from shiftcal.errors import FileError, UnknownName

ROWS = np.random.default_rng(5).uniform(-1, 1, (4, 256)).round(4)
DIGITS = [6, 0, 9, 3]


def text(rows=ROWS, digits=DIGITS):
    """Lines as in the official files: the label is the digit plus 1, every value is written."""
    lines = [
        f"{digit + 1} " + " ".join(f"{i}:{value:g}" for i, value in enumerate(row, 1)) + " \n"
        for row, digit in zip(rows, digits, strict=True)
    ]
    return "".join(lines).encode()


def write(folder, content, *, name="usps.t.bz2"):
    (folder / name).write_bytes(bz2.compress(content) if name.endswith(".bz2") else content)
    return folder


def write_npz(folder, **arrays):
    arrays = {
        "test_data": np.full((3, 256), 0.5, np.float32),
        "test_target": np.array([1, 2, 3], np.uint8),
    } | arrays
    np.savez(folder / "usps.npz", **arrays)
    return folder


@pytest.mark.parametrize("name", ["usps.t.bz2", "usps.t"])
def test_values_from_minus_one_to_one_become_bytes(tmp_path, name):
    images = usps(write(tmp_path, text(), name=name))
    assert images.labels.tolist() == DIGITS
    expected = np.rint((ROWS + 1) / 2 * 255).reshape(4, 16, 16)
    # Values are kept in single precision: one that falls between two bytes may go either way.
    assert np.abs(images.read([0, 1, 2, 3]).images[..., 0].astype(int) - expected).max() <= 1
    assert (images.read([0, 1, 2, 3]).images[..., 0] != expected).mean() < 0.001


def test_the_ends_and_the_middle_are_black_white_and_grey(tmp_path):
    rows = np.zeros((1, 256))
    rows[0, :3] = -1, 1, 0
    images = usps(write(tmp_path, text(rows, [4])))
    assert images[0][0, :4, 0].tolist() == [0, 255, 128, 128]


def test_the_text_is_read_as_scikit_learn_reads_it(tmp_path):
    sparse = b"3 1:-1 5:0.25 256:1\n10 2:0.5\n\n1 \n"
    images = usps(write(tmp_path, sparse))
    rows, labels = load_svmlight_file(io.BytesIO(sparse.replace(b"\n\n", b"\n")), n_features=256)
    assert images.labels.tolist() == (labels - 1).tolist() == [2, 9, 0]
    expected = np.rint((rows.toarray() + 1) * 127.5).reshape(3, 16, 16)
    np.testing.assert_array_equal(images.read([0, 1, 2]).images[..., 0], expected)


def test_train_and_test_are_different_files(tmp_path):
    write(tmp_path, text(ROWS[:1], [8]), name="usps.bz2")
    write(tmp_path, text())
    assert usps(tmp_path, split="train").labels.tolist() == [8]
    assert len(usps(tmp_path, split="test")) == 4


def test_the_real_arrays_have_the_published_counts(shared_data):
    train, test = (usps(shared_data / "digits", split=split) for split in ("train", "test"))
    assert [len(train), len(test)] == [part.n for part in ABOUT.parts] == [7291, 2007]
    # Counts of the digits 0 to 9 that Hastie, Tibshirani and Friedman publish with the data.
    counts = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(train.labels).tolist() == counts
    counts = [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    assert np.bincount(test.labels).tolist() == counts
    assert train[0].shape == (16, 16, 3)
    with np.load(shared_data / "digits" / "usps.npz") as stored:
        expected = np.rint(stored["test_data"] * 255).reshape(-1, 16, 16)
    np.testing.assert_array_equal(test.read(np.arange(2007)).images[..., 0], expected)


def test_other_processes_are_sent_the_path_and_not_the_pixels(shared_data):
    images = usps(shared_data / "digits")
    sent = pickle.dumps(images)
    assert len(sent) < 2007 * 256 / 10
    np.testing.assert_array_equal(pickle.loads(sent)[2006], images[2006])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"holds no usps\.t\.bz2, usps\.t or usps\.npz"):
        usps(tmp_path)
    with pytest.raises(UnknownName, match="split must be one of 'train', 'test'"):
        usps(tmp_path, split="val")


@pytest.mark.parametrize(
    "content", [b"garbage", b"BZh9garbage and more", bz2.compress(text())[:-200]]
)
def test_an_archive_of_garbage_or_cut_short_is_refused(tmp_path, content):
    (tmp_path / "usps.t.bz2").write_bytes(content)
    with pytest.raises(FileError, match=r"usps\.t\.bz2 cannot be unpacked.*Fetch it again"):
        usps(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"<html>not found</html>",
        b"1 1:0.5 2",
        b"1 1:0.5:2 0.5",
        b"1 0:0.5",
        b"1 257:0.5",
        b"1 1.5:0.5",
        b"1 1:x",
        b"1.5 1:0.5",
        b"1 nan:0.5",
        b"99999999999999999999 1:0.5",
    ],
)
def test_a_line_of_something_else_is_refused(tmp_path, line):
    write(tmp_path, text(ROWS[:1], [1]) + line + b"\n")
    with pytest.raises(FileError, match="row 2, must be a whole number and then pairs"):
        usps(tmp_path)


def test_an_empty_text_is_refused(tmp_path):
    with pytest.raises(FileError, match="holds nothing"):
        usps(write(tmp_path, b"\n \n"))


@pytest.mark.parametrize("value", ["1.5", "-1.5", "nan", "inf"])
def test_values_outside_the_range_are_refused(tmp_path, value):
    with pytest.raises(FileError, match="must hold values from -1 to 1"):
        usps(write(tmp_path, f"1 1:{value}\n".encode()))


@pytest.mark.parametrize("label", [b"0", b"11", b"-3"])
def test_labels_that_are_no_digit_are_refused(tmp_path, label):
    with pytest.raises(FileError, match="labels of ten digits"):
        usps(write(tmp_path, label + b" 1:0.5\n"))


def test_a_bomb_is_not_unpacked_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(_libsvm_text, "_MOST_BYTES", 1_000_000)
    (tmp_path / "usps.t.bz2").write_bytes(bz2.compress(bytes(30_000_000)))
    tracemalloc.start()
    with pytest.raises(FileError, match="unpacks to more than 1,000,000 bytes"):
        usps(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


def test_an_npz_of_other_arrays_is_refused(tmp_path):
    with pytest.raises(FileError, match="must hold an array 'train_data'; it holds test_data"):
        usps(write_npz(tmp_path), split="train")
    write_npz(tmp_path, test_data=np.zeros((3, 255), np.float32))
    with pytest.raises(FileError, match=r"shape \(n, 256\).*got shape \(3, 255\)"):
        usps(tmp_path)
    write_npz(tmp_path, test_data=np.zeros((3, 256), np.uint8))
    with pytest.raises(FileError, match=r"kind 'f'; got shape .* dtype uint8"):
        usps(tmp_path)
    write_npz(tmp_path, test_target=np.zeros(2, np.uint8))
    with pytest.raises(FileError, match="3 images and 2 labels"):
        usps(tmp_path)
    write_npz(tmp_path, test_data=np.full((3, 256), 1.5, np.float32))
    with pytest.raises(FileError, match="must hold values from 0 to 1"):
        usps(tmp_path)


def test_pickled_objects_in_an_npz_are_not_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("it ran",))

    with pytest.raises(FileError, match=r"got shape .* dtype object"):
        usps(write_npz(tmp_path, test_data=np.array([Trap()] * 3, object)))


def test_an_npz_header_that_promises_terabytes_takes_no_memory(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (2**32, 256)}
    )
    with zipfile.ZipFile(tmp_path / "usps.npz", "w") as archive:
        archive.writestr("test_data.npy", header.getvalue() + bytes(100))
    tracemalloc.start()
    with pytest.raises(FileError, match=r"promises 4,398,046,511,104 bytes"):
        usps(tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6


def test_an_npz_of_garbage_or_cut_short_is_refused(tmp_path):
    file = write_npz(tmp_path) / "usps.npz"
    whole = file.read_bytes()
    for content in (b"", b"garbage", whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(FileError, match="cannot be read: it is damaged, cut short"):
            usps(tmp_path)


def test_it_is_fetched_with_checksums():
    assert [file.file for file in ABOUT.downloads] == ["usps.bz2", "usps.t.bz2"]
    assert all(len(file.digest) == 32 and not file.unpack for file in ABOUT.downloads)
