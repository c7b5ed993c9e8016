"""Labels in a file of their own, joined by ids or by order."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.errors import FileError, InputWarning
from shiftcal.scores import Scores, read_labelled, read_labels, write_scores

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LOGITS = np.arange(12.0).reshape(4, 3) - 20
IDS = ["a", "b", "c", "d"]
PLAIN = Scores(LOGITS)
NAMED = Scores(LOGITS, classes=("ant", "bee", "cat"), ids=IDS)
WITHOUT_IDS = Scores(LOGITS, classes=NAMED.classes)
NAMELESS = Scores(LOGITS, classes=NAMED.classes, ids=["a", "", "c", ""], source="x.npz")
NUMBERED = Scores(LOGITS, classes=("1", "2", "3"), ids=IDS)
TRUTH = [2, 0, 1, 1]


def written(folder, content, suffix=None):
    """A file of labels: text is a table, an array an .npy file, a dict an archive or a table."""
    if isinstance(content, str):
        path = folder / "y.csv"
        path.write_text(content)
    elif isinstance(content, Scores):
        path = folder / f"y{suffix}"
        write_scores(path, content)
    elif suffix == ".parquet":
        path = folder / "y.parquet"
        pq.write_table(pa.table(content), path)
    elif isinstance(content, dict):
        path = folder / "y.npz"
        np.savez(path, **content)
    else:
        path = folder / "y.npy"
        np.save(path, np.array(content))
    return path


@pytest.mark.parametrize(
    ("content", "suffix", "scores"),
    [
        (np.array(TRUTH, dtype=np.int8), None, PLAIN),
        (["cat", "ant", "bee", "bee"], None, WITHOUT_IDS),
        ("id,label\nd,bee\nz,ant\nc,bee\na,cat\nb,ant\n", None, NAMED),
        ("\nid,label,,\nd,bee,,\nc,bee,,\na,cat,,\nb,ant,,\n", None, NAMED),
        ("label\n2\n0\n1\n1\n", None, WITHOUT_IDS),
        ("id,label\na,cat\nb,ant\nc,bee\nd,bee\n,\n", None, NAMED),
        ("path,label\nx/d,1\nx/b,0\nx/a,2\nx/c,1\n", None, NAMED),
        ("id,label\na,3\nb,1\nc,2\nd,2\n", None, NUMBERED),
        ({"label": [1, 0, 2, 1], "id": ["d", "b", "a", "c"]}, ".parquet", NAMED),
        ({"label": ["bee", "ant", "cat", "bee"], "file": ["d", "b", "a", "c"]}, ".parquet", NAMED),
        ({"labels": TRUTH, "ids": IDS}, None, NUMBERED),
        ({"labels": [0, 2, 1, 1], "classes": ["cat", "bee", "ant"]}, None, WITHOUT_IDS),
        ({"labels": ["cat", "ant", "bee", "bee"], "classes": ["ant", "bee", "cat"]}, None, PLAIN),
        (Scores(LOGITS, labels=[0, 2, 1, 1], classes=("cat", "bee", "ant")), ".csv", WITHOUT_IDS),
        (Scores(LOGITS, labels=[0, 2, 1, 1], classes=("cat", "bee", "ant")), ".parquet", NAMED),
    ],
)
@pytest.mark.filterwarnings("ignore::shiftcal.errors.InputWarning")
def test_labels_find_their_rows_and_classes(tmp_path, content, suffix, scores):
    labels = read_labels(written(tmp_path, content, suffix), scores)
    assert (labels.dtype, labels.tolist()) == (np.intp, TRUTH)


def test_going_by_order_is_a_warning_where_only_the_scores_have_ids(tmp_path):
    path = written(tmp_path, "label\n2\n0\n1\n1\n")
    with pytest.warns(InputWarning, match=r"y.csv were joined by order.*scores have ids") as seen:
        assert read_labels(path, NAMELESS).tolist() == TRUTH
    assert seen[0].filename == __file__


@pytest.mark.parametrize(
    ("content", "suffix", "scores", "words"),
    [
        ("id,label\na,cat\nb,ant\n", None, NAMED, "2 of 4 .*'c'.*--labelled-only"),
        ("id,label\na,cat\na,ant\nb,bee\nc,bee\nd,ant\n", None, NAMED, "twice, as cat and ant"),
        ("id,label\na,cat\n,ant\nc,bee\n", None, NAMELESS, "2 of 4 have no label here"),
        ("id,label\na,1\nb,1\n", None, PLAIN, "the scores have no ids to match"),
        ("label,x\n1,\n,\n0,\n1,\n", None, NAMED, "1 of 4 are missing"),
        # Row z is of no sample here, and yet its label says that the others are no indices.
        ("id,label\na,0\nb,1\nc,2\nd,0\nz,cat\n", None, NAMED, "3 classes; '0' is not"),
        ("id,label\nz,\na,1\nb,2\nc,3\nd,1\n", None, Scores(LOGITS, ids=IDS), "start at 1"),
        ("id,truth\na,cat\n", None, NAMED, "there is no column 'label'"),
        ("label\n", None, NAMED, "there are no labels"),
        ("label\n1\n", None, NAMED, "one entry per row"),
        ("id,label\na,0\n\nb,1,2\n", None, NAMED, "line 4: every row must have 2 cells.*has 3"),
        ({"labels": [0, 1], "ids": IDS[:3]}, None, NAMED, "one name per label; 3 names, 2 labels"),
        ({"truth": [0, 1]}, None, NAMED, "no array 'labels'; it holds 'truth'"),
        ({"labels": np.array([None] * 4)}, None, NAMED, "pickled Python objects"),
        ({"labels": TRUTH, "ids": IDS, "classes": ["1", "2", "3"]}, None, NAMED, "'1' is not"),
        (1, None, PLAIN, r"labels must have shape \(n,\); got shape \(\)"),
    ],
)
def test_labels_that_cannot_be_used_raise(tmp_path, content, suffix, scores, words):
    path = written(tmp_path, content, suffix)
    with pytest.raises(FileError, match=words) as raised:
        read_labels(path, scores)
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize("text", ["id,label\nd,bee\nz,ant\nb,ant\n", "id,label\na,\nd,1\nb,0\n"])
def test_the_rows_that_have_a_label_can_be_taken_alone(tmp_path, text):
    scores = Scores(LOGITS, classes=NAMED.classes, ids=NAMED.ids, features=LOGITS[:, :1])
    found = read_labelled(written(tmp_path, text), scores)
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
        ("id,label\n,1\n", Scores(LOGITS, ids=[""] * 4), "no row of the scores has a label"),
        ("label\n1\n", NAMED, "by their ids, and the labels have none"),
        ("id,label\na,1\n", PLAIN, "by their ids, and the scores have none"),
        ("id,label\na,1\na,2\n", NAMED, "has 'a' twice, as 1 and 2"),
        ("id,label\na,0\nz,cat\n", NAMED, "3 classes; '0' is not"),
        ("id,truth\na,1\n", NAMED, "there is no column 'label'"),
    ],
)
def test_rows_that_cannot_be_found_raise(tmp_path, text, scores, reason):
    with pytest.raises(FileError, match=rf"y.csv: .*{reason}"):
        read_labelled(written(tmp_path, text), scores)
