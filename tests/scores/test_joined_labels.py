"""Labels joined by ids: ids that are empty, what text means, and which row a message names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.scores import Scores, read_labelled, read_labels, read_scores

LOGITS = np.arange(12.0).reshape(4, 3) - 20
IDS = ["a", "b", "c", "d"]
CLASSES = ("ant", "bee", "cat")
SCORES = Scores(LOGITS, classes=CLASSES, ids=IDS)
NAMELESS = Scores(LOGITS, classes=CLASSES, ids=["a", "", "c", ""], source="x.npz")
NUMBERED = Scores(LOGITS, classes=("1", "2", "3"), ids=IDS)
REMEDY = r"Fill it in, or judge only the rows.*evaluate --labelled-only"


@pytest.fixture
def labels(tmp_path):
    def write(text):
        (tmp_path / "y.csv").write_text(text)
        return tmp_path / "y.csv"

    return write


def test_an_empty_id_of_the_scores_is_not_joined(labels):
    path = labels("id,label\na,cat\n,ant\nc,bee\n")
    with pytest.raises(FileError, match=rf"must not be empty.*row 1 of x\.npz is .*{REMEDY}"):
        read_labels(path, NAMELESS)


def test_an_empty_id_of_the_labels_is_not_joined_and_its_row_is_that_of_the_file(labels):
    path = labels("id,label\nz,\na,cat\nb,ant\n,bee\nc,bee\nd,bee\n")
    with pytest.raises(FileError, match=r"y\.csv: .*row 3 of this file is .*Fill it in"):
        read_labels(path, SCORES)


@pytest.mark.parametrize("ids", [["a", None, "c", "d"], [1.0, None, 3.0, 4.0]])
def test_missing_ids_of_a_parquet_table_are_empty_ids(tmp_path, ids):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"id": ids, "label": [0, 1, 2, 0]}), tmp_path / "y.parquet")
    with pytest.raises(FileError, match="row 1 of this file is"):
        read_labels(tmp_path / "y.parquet", SCORES)


def test_not_a_number_is_an_empty_id_too(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"id": [1.0, float("nan")], "label": [0, 1], "logit_a": [1.0, 2], "logit_b": [3.0, 4]}
    parquet.write_table(pa.table(table), tmp_path / "y.parquet")
    assert read_scores(tmp_path / "y.parquet").ids.tolist() == ["1.0", ""]


def test_a_row_with_neither_id_nor_label_is_no_row(labels):
    path = labels("id,label\na,cat\nb,ant\nc,bee\nd,bee\n,\n")
    assert read_labels(path, SCORES).tolist() == [2, 0, 1, 1]


def test_empty_ids_do_not_matter_where_rows_go_by_order(labels):
    path = labels("label\ncat\nant\nbee\nbee\n")
    with pytest.warns(InputWarning, match="joined by order"):
        assert read_labels(path, NAMELESS).tolist() == [2, 0, 1, 1]


def test_a_row_with_an_empty_id_counts_as_unlabelled(labels):
    found = read_labelled(labels("id,label\n,ant\nc,bee\n,cat\na,cat\n"), NAMELESS)
    assert found.ids.tolist() == ["a", "c"]
    assert found.labels.tolist() == [2, 1]


def test_ids_that_are_all_empty_are_said_to_be(labels):
    scores = Scores(LOGITS, ids=[""] * 4)
    with pytest.raises(FileError, match=r"no row of the scores has a label.*ids are all empty"):
        read_labelled(labels("id,label\n,1\n"), scores)
    with pytest.raises(FileError, match="their ids are such as 'a'"):
        read_labelled(labels("id,label\nz,1\n"), NAMELESS)


@pytest.mark.parametrize("read", [read_labels, read_labelled])
def test_what_text_means_is_told_by_the_whole_file(labels, read):
    # Row z is of no sample here, and yet its label says that the others are no indices.
    path = labels("id,label\na,0\nb,1\nc,2\nd,0\nz,cat\n")
    with pytest.raises(FileError, match="must be among the 3 classes; '0' is not"):
        read(path, SCORES)


def test_what_text_means_is_told_by_the_whole_archive(tmp_path):
    parts = {"ids": [*IDS, "z"], "labels": ["0", "1", "2", "0", "x"], "classes": ["x", "ant", "y"]}
    np.savez(tmp_path / "y.npz", **parts)
    for scores in (SCORES, Scores(LOGITS, ids=IDS)):
        with pytest.raises(FileError, match="must be among the 3 classes; '0' is not"):
            read_labels(tmp_path / "y.npz", scores)


@pytest.mark.parametrize("text", ["0", "7", "2.0"])
def test_numbers_that_are_no_class_are_refused_where_classes_are_numbers(labels, text):
    lines = "".join(f"{name},{text}\n" for name in IDS)
    with pytest.raises(FileError, match=rf"as '1' is; '{re.escape(text)}' is no class.*Use the na"):
        read_labels(labels(f"id,label\n{lines}"), NUMBERED)


def test_numbers_that_are_classes_are_those_classes(labels):
    assert read_labels(labels("id,label\na,3\nb,1\nc,2\nd,2\n"), NUMBERED).tolist() == [2, 0, 1, 1]


def test_whole_numbers_in_an_array_stay_indices_whatever_the_names(tmp_path):
    np.savez(tmp_path / "y.npz", labels=[2, 0, 1, 1], ids=IDS)
    assert read_labels(tmp_path / "y.npz", NUMBERED).tolist() == [2, 0, 1, 1]


def test_names_of_one_file_are_never_indices_of_the_other(tmp_path):
    np.savez(tmp_path / "y.npz", labels=[0, 1, 1, 0], ids=IDS, classes=["1", "2"])
    with pytest.raises(FileError, match="must be among the 3 classes; '1' is not"):
        read_labels(tmp_path / "y.npz", SCORES)


@pytest.mark.parametrize("read", [read_labels, read_labelled])
def test_a_bad_label_is_counted_in_its_own_file(labels, read):
    # It is the first label there is, and that of the last row of the scores.
    path = labels("id,label\nz,\nd,0.5\nc,2\na,1\nb,0\n")
    with pytest.raises(FileError, match=r"y\.csv: labels must be whole numbers; entry 1 is 0\.5"):
        read(path, SCORES)


def test_labels_from_one_are_recognised_beside_empty_cells(labels):
    with pytest.raises(FileError, match="start at 1, pass labels - 1"):
        read_labels(labels("id,label\nz,\na,1\nb,2\nc,3\nd,1\n"), Scores(LOGITS, ids=IDS))


@pytest.mark.parametrize(
    ("kind", "row", "words"),
    [
        ("logits", [np.nan, 0, 0], r"must be finite; row 3 holds nan"),
        ("probabilities", [0.5, 0.1, 0.0], "must sum to 1; row 3 sums to 0.6"),
    ],
)
def test_a_bad_row_among_those_taken_is_counted_in_the_file(labels, kind, row, words):
    values = np.array([[1.0, 0.0, 0.0]] * 4)
    values[3] = row
    path = labels("id,label\nd,bee\nb,ant\n")
    for source, error in (("x.npz", FileError), ("", InputError)):
        scores = Scores(values, kind, classes=CLASSES, ids=IDS, source=source)
        found = read_labelled(path, scores)
        assert found.rows.tolist() == [1, 3]
        with pytest.raises(error, match=words):
            found.logits()
        again = read_labelled(labels("id,label\nd,bee\n"), found)
        assert again.rows.tolist() == [3]
        labels("id,label\nd,bee\nb,ant\n")


@pytest.mark.parametrize("rows", [[1], [0.5, 1, 2, 3]])
def test_rows_that_do_not_fit_are_refused(rows):
    with pytest.raises(InputError, match=r"rows must be whole numbers, one per sample"):
        Scores(LOGITS, rows=np.array(rows))
