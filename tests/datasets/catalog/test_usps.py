"""USPS: libsvm text, the .npz form, and hostile files of both."""

from __future__ import annotations

import bz2
import io

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from shiftcal.datasets.catalog.digits import USPS as ABOUT
from shiftcal.datasets.catalog.digits import usps
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
    sparse = b"3 1:-1 5:0.25 256:1\n10 2:0.5\n\n1 \n7 8:1\n"
    images = usps(write(tmp_path, sparse))
    rows, labels = load_svmlight_file(io.BytesIO(sparse.replace(b"\n\n", b"\n")), n_features=256)
    assert images.labels.tolist() == (labels - 1).tolist() == [2, 9, 0, 6]
    expected = np.rint((rows.toarray() + 1) * 127.5).reshape(4, 16, 16)
    np.testing.assert_array_equal(images.read(range(4)).images[..., 0], expected)


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


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"holds no usps\.t\.bz2, usps\.t or usps\.npz"):
        usps(tmp_path)
    with pytest.raises(UnknownName, match="split must be one of 'train', 'test'"):
        usps(tmp_path, split="val")


def test_pickled_objects_in_an_npz_are_not_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("it ran",))

    with pytest.raises(FileError, match=r"holds pickled Python objects"):
        usps(write_npz(tmp_path, test_data=np.array([Trap()] * 3, object)))
