"""Labels in an .npz file, named as FILE.npz:KEY."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from shiftcal.datasets.labels import read_labels
from shiftcal.errors import FileError, MissingData


def test_without_a_key_labels_are_the_array_of_that_name(tmp_path):
    np.savez(tmp_path / "l.npz", labels=[1, 1], other=[0, 0])
    assert read_labels(tmp_path / "l.npz").tolist() == [1, 1]
    np.savez(tmp_path / "o.npz", test=[1, 1], train=[0, 0])
    with pytest.raises(
        FileError, match=r"no array 'labels'; it holds 'test', 'train'\. Name one as o\.npz:test"
    ):
        read_labels(tmp_path / "o.npz")
    with pytest.raises(FileError, match="no array 'tset'; it holds 'test', 'train'"):
        read_labels(tmp_path / "o.npz:tset")


def test_a_file_of_that_very_name_is_the_path_it_is(tmp_path):
    (tmp_path / "l.npz:x.txt").write_text("4\n5\n")
    assert read_labels(tmp_path / "l.npz:x.txt").tolist() == ["4", "5"]


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(MissingData, match=r"none.npz does not exist"):
        read_labels(tmp_path / "none.npz:test")
    (tmp_path / "l.npz").write_bytes(b"text")
    with pytest.raises(FileError, match=r"l\.npz is not an \.npz archive: it begins with"):
        read_labels(tmp_path / "l.npz:test")
    with zipfile.ZipFile(tmp_path / "l.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileError, match=r"'readme.txt' in it is not an array"):
        read_labels(tmp_path / "l.npz:readme.txt")
    with zipfile.ZipFile(tmp_path / "l.npz", "w") as archive:
        archive.writestr("test.npy", b"damaged")
    with pytest.raises(FileError, match=r"l\.npz.* 'test' in it is not an array"):
        read_labels(tmp_path / "l.npz:test")
    np.savez(tmp_path / "l.npz", table=np.eye(2), none=[])
    for key, words in [("table", r"must have shape \(n,\).*\(2, 2\)"), ("none", "no labels")]:
        with pytest.raises(FileError, match=rf"l.npz:{key}: .*{words}"):
            read_labels(f"{tmp_path}/l.npz:{key}")


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "l.npz", test=np.array([{}], object))
    with pytest.raises(FileError, match="pickled Python objects, which are never loaded"):
        read_labels(f"{tmp_path}/l.npz:test")
