"""Labels in a file of their own."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.errors import FileError, InputWarning
from shiftcal.scores import Scores, read_labelled, read_labels, write_scores

LOGITS = np.arange(12.0).reshape(4, 3) - 20
PLAIN = Scores(LOGITS)
NAMED = Scores(LOGITS, classes=("ant", "bee", "cat"), ids=np.array(["a", "b", "c", "d"]))
TRUTH = [2, 0, 1, 1]
WITHOUT_IDS = Scores(LOGITS, classes=NAMED.classes)


def test_an_npy_file_is_one_array(tmp_path):
    np.save(tmp_path / "y.npy", np.array(TRUTH, dtype=np.int8))
    labels = read_labels(tmp_path / "y.npy", PLAIN)
    assert labels.tolist() == TRUTH
    assert labels.dtype == np.intp


def test_names_are_looked_up_among_the_classes_of_the_scores(tmp_path):
    np.save(tmp_path / "y.npy", np.array(["cat", "ant", "bee", "bee"]))
    assert read_labels(tmp_path / "y.npy", WITHOUT_IDS).tolist() == TRUTH


def test_rows_are_joined_by_ids(tmp_path):
    (tmp_path / "y.csv").write_text("id,label\nd,bee\nz,ant\nc,bee\na,cat\nb,ant\n")
    assert read_labels(tmp_path / "y.csv", NAMED).tolist() == TRUTH


def test_tables_without_ids_go_by_order(tmp_path):
    (tmp_path / "y.csv").write_text("label\n2\n0\n1\n1\n")
    assert read_labels(tmp_path / "y.csv", WITHOUT_IDS).tolist() == TRUTH


def test_going_by_order_is_a_warning_where_only_the_scores_have_ids(tmp_path):
    (tmp_path / "y.csv").write_text("label\n2\n0\n1\n1\n")
    with pytest.warns(
        InputWarning, match=r"y.csv were joined by order:.*the scores have ids"
    ) as seen:
        assert read_labels(tmp_path / "y.csv", NAMED).tolist() == TRUTH
    assert seen[0].filename == __file__


@pytest.mark.parametrize("labels", [[1, 0, 2, 1], ["bee", "ant", "cat", "bee"]])
def test_a_parquet_table_of_labels_alone_is_joined_by_ids(tmp_path, labels):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"label": labels, "id": ["d", "b", "a", "c"]})
    parquet.write_table(table, tmp_path / "y.parquet")
    assert read_labels(tmp_path / "y.parquet", NAMED).tolist() == TRUTH


def test_a_parquet_table_with_scores_keeps_the_names_of_its_classes(tmp_path):
    pytest.importorskip("pyarrow")
    others = Scores(LOGITS, labels=np.array([0, 2, 1, 1]), classes=("cat", "bee", "ant"))
    write_scores(tmp_path / "y.parquet", others)
    assert read_labels(tmp_path / "y.parquet", WITHOUT_IDS).tolist() == TRUTH


def test_a_parquet_table_without_labels_is_refused(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"truth": [1], "id": ["d"]})
    parquet.write_table(table, tmp_path / "y.parquet")
    with pytest.raises(FileError, match="there are no labels"):
        read_labels(tmp_path / "y.parquet", NAMED)


@pytest.mark.parametrize("text", ["id,label\nd,bee\nz,ant\nb,ant\n", "id,label\na,\nd,1\nb,0\n"])
def test_the_rows_that_have_a_label_can_be_taken_alone(tmp_path, text):
    (tmp_path / "y.csv").write_text(text)
    scores = Scores(LOGITS, classes=NAMED.classes, ids=NAMED.ids, features=LOGITS[:, :1])
    found = read_labelled(tmp_path / "y.csv", scores)
    assert found.ids.tolist() == ["b", "d"]
    assert found.labels.tolist() == [0, 1]
    np.testing.assert_array_equal(found.values, LOGITS[[1, 3]])
    np.testing.assert_array_equal(found.features, LOGITS[[1, 3], :1])
    assert found.classes == NAMED.classes


@pytest.mark.parametrize(
    ("text", "scores", "reason"),
    [
        ("id,label\nz,ant\n", NAMED, "no row of the scores has a label in it.*'a'"),
        ("id,label\na,\nb,\n", NAMED, "no row of the scores has a label"),
        ("label\n1\n", NAMED, "by ids only, and the labels have none"),
        ("id,label\na,1\n", PLAIN, "by ids only, and the scores have none"),
        ("id,label\na,1\na,2\n", NAMED, "has 'a' twice, as '1' and as '2'"),
        ("id,truth\na,1\n", NAMED, "there are no labels"),
    ],
)
def test_rows_that_cannot_be_found_are_refused(tmp_path, text, scores, reason):
    (tmp_path / "y.csv").write_text(text)
    with pytest.raises(FileError, match=rf"y.csv: .*{reason}"):
        read_labelled(tmp_path / "y.csv", scores)


def test_classes_in_another_order_are_matched_by_name(tmp_path):
    np.savez(tmp_path / "y.npz", labels=[0, 2, 1, 1], classes=np.array(["cat", "bee", "ant"]))
    assert read_labels(tmp_path / "y.npz", WITHOUT_IDS).tolist() == TRUTH


def test_names_can_be_resolved_by_the_classes_beside_them(tmp_path):
    labels, classes = np.array(["cat", "ant", "bee", "bee"]), np.array(["ant", "bee", "cat"])
    np.savez(tmp_path / "y.npz", labels=labels, classes=classes)
    assert read_labels(tmp_path / "y.npz", PLAIN).tolist() == TRUTH


def test_a_scores_file_with_labels_will_do(tmp_path):
    write_scores(tmp_path / "y.safetensors", Scores(LOGITS, labels=np.array(TRUTH)))
    assert read_labels(tmp_path / "y.safetensors", PLAIN).tolist() == TRUTH


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "id,label\na,cat\nb,ant\n",
            "2 of 4 have no label here: they are not in 'id', the first of them 'c'",
        ),
        ("id,label\na,cat\nb,ant\n", "evaluate --labelled-only, read_labelled in Python"),
        ("id,label\na,cat\na,ant\nb,bee\nc,bee\nd,ant\n", "'a' twice, as 'cat' and as 'ant'"),
        (
            "id,label\na,cat\nb\nc,bee\nd,ant\n",
            "1 of 4 have no label here: .*the first of them 'b'",
        ),
        ("label,x\n1,\n,\n0,\n1,\n", "1 of 4 are missing"),
        ("label\n1_0\n1_0\n1_0\n1_0\n", "labels must be among the 3 classes; '1_0' is not"),
        ("id,label\na,dog\nb,ant\nc,bee\nd,ant\n", "'dog' is not"),
        ("id,truth\na,cat\n", "there are no labels"),
        ("label\n", "there are no labels"),
        ("label\n1\n", "one entry per row"),
        ("label\n5\n5\n5\n5\n", "labels must lie in 0..2"),
        ("id,label,label\na,1,2\n", "has the column 'label' twice; leave one out"),
        ("label,id,id\n1,a,a\n", "has the column 'id' twice; leave one out"),
        ("id,label\na,0\n\nb,1,2\n", "y.csv, line 4: a row must have no more than 2 cells.*has 3"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, text, reason):
    (tmp_path / "y.csv").write_text(text)
    with pytest.raises(FileError, match=reason) as caught:
        read_labels(tmp_path / "y.csv", NAMED)
    assert str(caught.value).startswith(str(tmp_path / "y.csv"))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"labels": np.zeros((4, 1), int)}, r"labels must have shape \(n,\)"),
        ({"labels": [0, 1], "ids": ["a", "b", "c"]}, "one of ids per label; 3 ids, 2 labels"),
        ({"truth": [0, 1]}, "no array 'labels'; it holds 'truth'"),
        ({"labels": [0, 1, 2, 3], "classes": ["ant", "bee", "cat"]}, "labels must lie in 0..2"),
        ({"labels": np.array([None] * 4)}, "pickled Python objects"),
        ({"labels": np.array(1)}, r"labels must have shape \(n,\); got shape \(\)"),
        ({"labels": [0, 1], "ids": np.array("a")}, r"ids must have shape \(n,\); got shape \(\)"),
        ({"labels": [0], "ids": [["a"]]}, r"ids must have shape \(n,\); got shape \(1, 1\)"),
        ({"labels": [0], "classes": np.array("a")}, r"y.npz: classes must have .* got shape \(\)"),
        ({"labels": [0], "classes": [["a", "b"]]}, r"classes must have .* got shape \(1, 2\)"),
        ({"labels": [0], "classes": ["a", "a"]}, "'a' comes twice"),
        ({"labels": np.empty(0, int), "ids": np.empty(0, "U1")}, "there are no labels"),
    ],
)
def test_archives_that_cannot_be_used_are_refused(tmp_path, parts, reason):
    np.savez(tmp_path / "y.npz", **parts)
    with pytest.raises(FileError, match=reason):
        read_labels(tmp_path / "y.npz", NAMED)


def test_an_npy_file_of_one_number_is_refused(tmp_path):
    np.save(tmp_path / "y.npy", np.array(1))
    with pytest.raises(FileError, match=r"labels must have shape \(n,\); got shape \(\)"):
        read_labels(tmp_path / "y.npy", PLAIN)


def test_columns_that_are_not_read_may_be_there_twice(tmp_path):
    (tmp_path / "y.csv").write_text("\nid,label,,\nd,bee,,\nc,bee,,\na,cat,,\nb,ant,,\n")
    assert read_labels(tmp_path / "y.csv", NAMED).tolist() == TRUTH


def test_a_parquet_column_given_twice_is_refused(tmp_path):
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["label", "label"])
    parquet.write_table(table, tmp_path / "y.parquet")
    with pytest.raises(FileError, match="has the column 'label' twice"):
        read_labels(tmp_path / "y.parquet", NAMED)


@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.csv"])
def test_damaged_files_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"\xff\xfe\x00damaged")
    with pytest.raises(FileError, match=name):
        read_labels(tmp_path / name, PLAIN)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        read_labels(tmp_path / "y.npy", PLAIN)


def test_indices_in_a_csv_of_scores_count_its_own_columns(tmp_path):
    scores = Scores(np.array([[1.0, -2.0]] * 3), "logits", ids=list("abc"), classes=("cat", "dog"))
    path = tmp_path / "x.csv"
    path.write_text("id,logit_dog,logit_cat,label\na,1,2,0\nb,1,2,1\nc,1,2,0\n")
    assert read_labels(path, scores).tolist() == [1, 0, 1]
