"""Labels in files of their own."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.datasets import as_image_set
from shiftcal.datasets.image_files import FileImages
from shiftcal.datasets.labels import labels_for, read_labels
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
        ("l.csv", b"file,class\na,1\n", "there are no labels. Name them"),
        ("l.csv", b"File,label\na,1\n", "holds 'File', which is not read. Did you mean 'file'"),
        ("l.csv", b"label,file\n1,a\n,b\n", "1 of 2 are missing"),
        ("l.csv", b"", "is empty"),
        ("l.csv", b"label\n\xff\n", "could not be read as comma-separated text"),
        ("l.csv", b'label\n"1', "could not be read as comma-separated text"),
        ("l.csv", b"label\n", "there are no labels"),
        ("l.txt", b"1\n\n2\n", "line 2 is empty"),
        ("l.txt", b"\n", "there are no labels"),
        ("l.txt", b"\xff", "could not be read as text in UTF-8"),
        ("l.npy", b"text", "is not a .npy array"),
        ("l.mat", b"x", "must be a file of labels and end in .npy, .* it ends in '.mat'"),
    ],
)
def test_files_that_are_no_labels_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=words):
        read_labels(tmp_path / name)


def test_a_missing_file_and_a_table_of_numbers_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"none.npy does not exist"):
        read_labels(tmp_path / "none.npy")
    np.save(tmp_path / "l.npy", np.eye(3))
    with pytest.raises(FileError, match=r"shape \(n,\); got shape \(3, 3\)"):
        read_labels(tmp_path / "l.npy")
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(FileError, match="pickled Python objects"):
        read_labels(tmp_path / "o.npy")


FILES = ["cat/a.png", "cat/b.png", "dog/c.png"]


def files(names=FILES):
    return FileImages(".", names, name="three files")


@pytest.mark.parametrize("column", ["file", "path", "id"])
def test_a_table_that_names_the_images_is_joined_by_their_names(tmp_path, column):
    table = tmp_path / "l.csv"
    table.write_text(f"label,{column}\n2,dog/c.png\n9,cow/d.png\n1,cat/b.png\n0,cat/a.png\n")
    assert labels_for(files(), table).tolist() == ["0", "1", "2"]
    assert as_image_set(files(), labels=table).labels.tolist() == [0, 1, 2]


def test_folders_may_be_left_out_where_the_names_tell_the_images_apart(tmp_path):
    table = tmp_path / "l.csv"
    table.write_text("file,label\nc.png,2\nx.png,7\n/data/old/b.png,1\n.\\cat\\a.png,0\n")
    assert labels_for(files(), table).tolist() == ["0", "1", "2"]
    table.write_text("file,label\na.png,2\nb.png,7\n")
    with pytest.raises(FileError, match=r"several are called 'a.png': 'file' must hold fol"):
        labels_for(files(["cat/a.png", "dog/a.png", "dog/b.png"]), table)
    table.write_text("file,label\n1/a.png,0\n2/a.png,5\n1/b.png,1\n1/c.png,2\n")
    with pytest.raises(FileError, match=r"it has 'a.png' twice, as '0' and as '5'"):
        labels_for(files(), table)


def test_an_image_that_the_table_lacks_is_named_with_their_number(tmp_path):
    table = tmp_path / "l.csv"
    table.write_text("file,label\ncat/a.png,0\ndog/b.png,1\nold/c.png,1\n")
    # One is found by its whole name, so that dog/b.png is another image than cat/b.png.
    with pytest.raises(
        FileError,
        match=r"2 of 3 have no label here:.* not in 'file', the first of them 'cat/b.png'",
    ):
        labels_for(files(), table)
    with pytest.raises(FileError, match=r"3 of 3 have no label here: .*'file', .*'0'.*in order"):
        labels_for(as_image_set(np.zeros((3, 8, 8, 3), np.uint8)), table)


def test_rows_of_one_image_must_agree(tmp_path):
    table = tmp_path / "l.csv"
    rows = "file,label\ncat/a.png,0\ncat/b.png,1\ndog/c.png,2\n"
    table.write_text(rows + "cat/a.png,0\nx.png,1\nx.png,2\n")
    assert labels_for(files(), table).tolist() == ["0", "1", "2"]
    table.write_text(rows + "cat/a.png,3\n")
    with pytest.raises(FileError, match=r"it has 'cat/a.png' twice, as '0' and as '3'"):
        labels_for(files(), table)


def test_of_several_columns_the_one_that_has_the_images_counts(tmp_path):
    table = tmp_path / "l.csv"
    table.write_text("id,file,label\n2,x,c\n0,y,a\n1,z,b\n")
    images = as_image_set(np.zeros((3, 8, 8, 3), np.uint8))
    assert labels_for(images, table).tolist() == ["a", "b", "c"]


def test_labels_in_order_must_be_as_many_as_the_images(tmp_path):
    (tmp_path / "l.csv").write_text("label\n1\n0\n")
    np.save(tmp_path / "l.npy", np.arange(4))
    with pytest.raises(FileError, match=r"for every image of three files, 3 in order; it has 2"):
        labels_for(files(), tmp_path / "l.csv")
    with pytest.raises(FileError, match=r"3 in order; it has 4\. A column 'file'"):
        as_image_set(files(), labels=tmp_path / "l.npy")
