"""Labels in files of their own."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.datasets.label_files import read_labels
from shiftcal.errors import FileError


def test_every_kind_gives_the_labels_in_order(tmp_path):
    np.save(tmp_path / "l.npy", np.array([2, 0, 1]))
    (tmp_path / "l.csv").write_text("file,label\na.png, cat\nb.png,dog\n\nc.png,cat\n")
    (tmp_path / "l.txt").write_text("\ufeff2\r\n0\r\n1\r\n\r\n", encoding="utf-8")
    assert read_labels(tmp_path / "l.npy").tolist() == [2, 0, 1]
    assert read_labels(tmp_path / "l.csv").tolist() == ["cat", "dog", "cat"]
    assert read_labels(tmp_path / "l.txt").tolist() == ["2", "0", "1"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "l.csv",
            b"file,class\na,1\n",
            "must have a column 'label'; its first line is 'file, class'",
        ),
        ("l.csv", b"label,file\n1,a\n,b\n", "row 2 has no label"),
        ("l.csv", b"", "must have a column 'label'"),
        ("l.csv", b"label\n\xff\n", "could not be read as labels"),
        ("l.csv", b'label\n"1', "could not be read as labels"),
        ("l.csv", b"label\n", r"labels in a row, shape \(n,\); got shape \(0,\)"),
        ("l.txt", b"1\n\n2\n", "line 2 is empty"),
        ("l.txt", b"", "labels in a row"),
        ("l.npy", b"text", "could not be read as labels"),
        ("l.npy", b"", "could not be read as labels"),
        ("l.mat", b"", "must be a file of labels, .npy, .csv or .txt; it ends in '.mat'"),
    ],
)
def test_files_that_are_no_labels_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=words):
        read_labels(tmp_path / name)


def test_a_missing_file_and_a_table_of_numbers_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"none.npy could not be read: No such file"):
        read_labels(tmp_path / "none.npy")
    np.save(tmp_path / "l.npy", np.eye(3))
    with pytest.raises(FileError, match=r"shape \(n,\); got shape \(3, 3\)"):
        read_labels(tmp_path / "l.npy")
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(FileError, match="could not be read as labels: Object arrays"):
        read_labels(tmp_path / "o.npy")
