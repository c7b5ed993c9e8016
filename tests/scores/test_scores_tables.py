"""Files of columns: .csv and .parquet."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.errors import FileError
from shiftcal.scores import read_scores

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def text(folder, content, encoding="utf-8"):
    path = folder / "x.csv"
    path.write_bytes(content.encode(encoding))
    return path


def parquet(folder, **columns):
    pq.write_table(pa.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


def table(folder, suffix, columns):
    """The same table in either format."""
    if suffix == ".parquet":
        return parquet(folder, **columns)
    rows = zip(*columns.values(), strict=True)
    lines = [",".join("" if c is None else str(c) for c in row) for row in (columns, *rows)]
    return text(folder, "\n".join(lines))


@pytest.fixture(params=[".csv", ".parquet"])
def suffix(request):
    return request.param


def test_columns_may_stand_in_any_order_among_others(tmp_path, suffix):
    columns = {
        "split": ["a", "b"],
        "logit_dog": [1.0, 2.0],
        "label": ["cat", "dog"],
        "feature_10": [5.0, 6.0],
        "logit_cat": [3.0, 4.0],
        "feature_9": [7.0, 8.0],
        "id": ["x", "y"],
        "confidence": [0.5, 0.6],
    }
    scores = read_scores(table(tmp_path, suffix, columns))
    assert scores.classes == ("dog", "cat")
    assert scores.values.tolist() == [[1, 3], [2, 4]]
    assert scores.labels.tolist() == [1, 0]
    assert scores.features.tolist() == [[7, 5], [8, 6]]
    assert scores.ids.tolist() == ["x", "y"]


def test_numbered_classes_have_no_names_and_are_in_number_order(tmp_path, suffix):
    columns = {f"probability_{i}": [float(i == 3)] for i in sorted(map(str, range(11)))}
    columns = {name: [float(name.endswith("_3"))] for name in columns} | {"label": [3]}
    scores = read_scores(table(tmp_path, suffix, columns))
    assert scores.classes is None
    assert scores.input == "probabilities"
    assert scores.values.argmax() == scores.labels[0] == 3


def test_labels_may_be_indices_of_named_classes(tmp_path, suffix):
    columns = {"logit_cat": [1.0, 2.0], "logit_dog": [0.0, 5.0], "label": [1, 0]}
    assert read_scores(table(tmp_path, suffix, columns)).labels.tolist() == [1, 0]


def test_a_column_of_empty_labels_is_no_labels(tmp_path, suffix):
    columns = {"logit_0": [1.0, 2.0], "logit_1": [0.0, 5.0], "label": [None, None]}
    assert read_scores(table(tmp_path, suffix, columns)).labels is None


def test_some_empty_labels_are_refused_with_their_number(tmp_path, suffix):
    columns = {"logit_0": [1.0] * 3, "logit_1": [0.0] * 3, "label": [None, 1, None]}
    with pytest.raises(FileError, match=r"x\.\w+: labels must be .* or for none; 2 of 3 are"):
        read_scores(table(tmp_path, suffix, columns))


def test_an_unknown_label_is_named(tmp_path, suffix):
    columns = {"logit_cat": [1.0, 2.0], "logit_dog": [0.0, 5.0], "label": ["cat", "dgo"]}
    with pytest.raises(FileError, match=r"among the 2 classes; 'dgo' is not. Did you mean 'dog'"):
        read_scores(table(tmp_path, suffix, columns))


def test_no_column_of_scores_is_refused_with_the_columns_there_are(tmp_path, suffix):
    with pytest.raises(FileError, match=r"logit_<class> or probability_<class>.*'p_cat', 'p_dog'"):
        read_scores(table(tmp_path, suffix, {"p_cat": [1.0], "p_dog": [0.0]}))


def test_columns_of_both_kinds_are_refused(tmp_path, suffix):
    columns = {"logit_a": [1.0], "logit_b": [1.0], "probability_a": [1.0]}
    with pytest.raises(FileError, match=r"both logits \('logit_a'\) and probabilities \('prob"):
        read_scores(table(tmp_path, suffix, columns))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *[("labels", "label"), ("Label", "label"), ("lable", "label"), ("ID", "id")],
        *[("logits_c", "logit_c"), ("Logit_c", "logit_c"), ("probabilty_c", "probability_c")],
        *[("features_0", "feature_0"), ("probabilities_c", "probability_c")],
    ],
)
def test_a_mistyped_column_is_noticed(tmp_path, suffix, typed, meant):
    columns = {"logit_a": [1.0], "logit_b": [2.0], typed: [0.0]}
    with pytest.raises(FileError, match=f"holds '{typed}', .* Did you mean '{meant}'"):
        read_scores(table(tmp_path, suffix, columns))


def test_an_empty_table_is_refused(tmp_path, suffix):
    with pytest.raises(FileError, match=r"logits must have shape .* got shape \(0, 2\)"):
        read_scores(table(tmp_path, suffix, {"logit_a": np.empty(0), "logit_b": np.empty(0)}))


def test_a_column_given_twice_is_refused(tmp_path):
    with pytest.raises(FileError, match="has the column 'logit_a' twice"):
        read_scores(text(tmp_path, "logit_a,logit_b,logit_a\n1,2,3\n"))
    with pytest.raises(FileError, match="has the column 'id' twice"):
        read_scores(text(tmp_path, "id,logit_a,logit_b,id\n1,2,3,4\n"))


def test_a_row_with_more_cells_than_the_header_is_refused_with_its_line(tmp_path):
    with pytest.raises(FileError, match=r"x\.csv, line 4: every row must have 2 cells.*has 3"):
        read_scores(text(tmp_path, "logit_a,logit_b\n1,2\n\n3,4,5\n"))


@pytest.mark.parametrize("cell", ["abc", "", '"1,5"', "1 2"])
def test_a_cell_that_is_no_number_is_named_with_its_line(tmp_path, cell):
    path = text(tmp_path, f"id,logit_a,logit_b\n1,2,3\n\n2,3,{cell}\n")
    with pytest.raises(FileError, match=r"x.csv, line 4: column 'logit_b' must hold numbers"):
        read_scores(path)


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
@pytest.mark.parametrize("quote", ["", '"'])
def test_another_delimiter_is_said(tmp_path, mark, word, quote):
    header = mark.join(f"{quote}logit_{name}{quote}" for name in "abc")
    with pytest.raises(FileError, match=rf"separated by commas; this one is separated by {word}"):
        read_scores(text(tmp_path, f"{header}\n1,5{mark}2,5{mark}3,5\n"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_and_any_line_ends_are_tolerated(tmp_path, encoding, end):
    path = text(tmp_path, end.join(["id, logit_é, logit_b", " x, 1, 2", "y ,3e0,-4", ""]), encoding)
    scores = read_scores(path)
    assert scores.classes == ("é", "b")
    assert scores.ids.tolist() == ["x", "y "]
    assert scores.values.tolist() == [[1, 2], [3, -4]]


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_text_that_is_not_utf8_is_refused(tmp_path, encoding):
    path = text(tmp_path, "logit_é,logit_b\n1,2\n", encoding)
    with pytest.raises(FileError, match="could not be read as comma-separated text in UTF-8"):
        read_scores(path)


def test_a_quote_that_is_never_closed_is_refused(tmp_path):
    with pytest.raises(FileError, match="could not be read as comma-separated text"):
        read_scores(text(tmp_path, 'id,logit_a,logit_b\n"x,1,2\ny,3,4\n'))


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda t: pa.list_(t, 3)])
@pytest.mark.parametrize("chunks", [1, 2])
def test_list_columns_are_read(tmp_path, kind, chunks):
    rows = np.random.default_rng(8).standard_normal((6, 3)).astype(np.float32)
    parts = [pa.array(part.tolist(), kind(pa.float32())) for part in np.split(rows, chunks)]
    features = pa.array(rows[:, :1].tolist())
    path = parquet(tmp_path, logits=pa.chunked_array(parts), features=features, label=[2] * 6)
    scores = read_scores(path)
    assert scores.values.dtype == np.float32
    np.testing.assert_array_equal(scores.values, rows)
    np.testing.assert_array_equal(scores.features, rows[:, :1])
    assert scores.labels.tolist() == [2] * 6
    assert scores.classes is None


@pytest.mark.parametrize("logits", [[[1.0, None]], [[1.0, 2.0], None]])
def test_missing_numbers_in_lists_are_counted(tmp_path, logits):
    with pytest.raises(FileError, match="'logits' must have a number in every row; 1 are missing"):
        read_scores(parquet(tmp_path, logits=logits))


def test_categories_and_whole_numbers_serve_as_labels_and_ids(tmp_path):
    label = pa.array(["dog", "cat"]).dictionary_encode()
    scores = read_scores(
        parquet(tmp_path, logit_cat=[1, 2], logit_dog=[0.5, 1.5], label=label, id=[7, None])
    )
    assert scores.labels.tolist() == [1, 0]
    assert scores.ids.tolist() == ["7", ""]
    assert scores.values.tolist() == [[1, 0.5], [2, 1.5]]


def test_a_changed_byte_in_the_numbers_of_a_parquet_file_is_noticed(tmp_path):
    from shiftcal.scores import Scores, write_scores

    values = np.random.default_rng(6).standard_normal((1000, 2))
    write_scores(tmp_path / "x.parquet", Scores(values))
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    content[4000] ^= 1
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(FileError, match=r"could not be read as a Parquet file.*checksum"):
        read_scores(tmp_path / "x.parquet")
