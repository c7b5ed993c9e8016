"""Scores files of every format: round trips, what is read, and damaged or hostile files."""

from __future__ import annotations

import csv
import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from shiftcal.errors import FileError
from shiftcal.scores import Scores, read_scores, write_scores

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FORMATS = [".npz", ".csv", ".parquet"]
CLASSES = ("Zürich", "red fox", '12" disc, large', "猫")
IDS = ["a,b", 'say "hi"', " leading and trailing ", "", "two\nlines", "cr\ronly", "007", "écran"]
LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0], [1.0, 1.5, -4.0]])
LABELS = np.array([0, 1, 2])


def full(dtype=np.float64, kind="logits", seed=3):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((len(IDS), 4))
    return Scores(
        (z if kind == "logits" else softmax(z, axis=1)).astype(dtype),
        kind,
        labels=rng.integers(0, 4, len(IDS)),
        features=rng.standard_normal((len(IDS), 12)).astype(dtype),
        ids=np.array(IDS),
        classes=CLASSES,
    )


def assert_same(read, written):
    assert read.input == written.input
    assert read.classes == written.classes
    np.testing.assert_array_equal(read.values, written.values)
    for part in ("labels", "features", "ids"):
        a, b = getattr(read, part), getattr(written, part)
        assert (a is None) == (b is None), part
        if b is not None:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("suffix", FORMATS)
def test_everything_comes_back(tmp_path, suffix, dtype, kind):
    path = tmp_path / f"set{suffix}"
    written = full(dtype, kind)
    write_scores(path, written)
    read = read_scores(path)
    assert_same(read, written)
    assert read.source == str(path)
    # Text has no dtype; its digits are enough for the value itself to be the same.
    assert read.values.dtype == (np.float64 if suffix == ".csv" else dtype)


finite = st.floats(allow_nan=False, width=64)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@st.composite
def any_scores(draw):
    n, k = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    row = st.lists(finite, min_size=k, max_size=k)
    values = draw(st.lists(row, min_size=n, max_size=n))
    maybe = st.booleans()
    # Classes named by numbers are put in number order in tables; that has a test of its own.
    name = names.filter(lambda text: text and not text.isdigit())
    unique = st.lists(name, min_size=k, max_size=k, unique=True)
    labels = st.lists(st.integers(0, k - 1), min_size=n, max_size=n)
    return Scores(
        np.array(values),
        labels=np.array(draw(labels)) if draw(maybe) else None,
        ids=np.array(draw(st.lists(names, min_size=n, max_size=n))) if draw(maybe) else None,
        classes=tuple(draw(unique)) if draw(maybe) else None,
    )


@pytest.mark.parametrize("suffix", FORMATS)
@given(written=any_scores())
def test_any_text_and_any_number_come_back(tmp_path_factory, suffix, written):
    path = tmp_path_factory.mktemp("any") / f"set{suffix}"
    write_scores(path, written)
    assert_same(read_scores(path), written)


@pytest.mark.parametrize("suffix", FORMATS)
def test_other_programs_read_what_is_written(tmp_path, suffix):
    scores, path = full(kind="probabilities"), tmp_path / f"out{suffix}"
    confidence, predicted = scores.values.max(axis=1), scores.values.argmax(axis=1)
    write_scores(path, scores, confidence=confidence, predicted=predicted)
    assert_same(read_scores(path), scores)  # the further columns do not disturb reading
    names = [CLASSES[i] for i in predicted]
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            parts = {"probabilities", "labels", "features", "ids", "classes"}
            assert set(file.files) == parts | {"confidence", "predicted"}
            np.testing.assert_array_equal(file["confidence"], confidence)
            np.testing.assert_array_equal(file["predicted"], predicted)
            assert file["labels"].dtype == file["predicted"].dtype == np.int64
    elif suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0])[:5] == ["id", "label", "predicted", "confidence", "probability_Zürich"]
        assert [row["id"] for row in rows] == IDS
        assert [row["predicted"] for row in rows] == names
        assert [float(row["confidence"]) for row in rows] == confidence.tolist()
        assert [float(row["probability_猫"]) for row in rows] == scores.values[:, 3].tolist()
        assert [float(row["feature_11"]) for row in rows] == scores.features[:, 11].tolist()
    else:
        table = pq.read_table(path)
        assert table["confidence"].to_pylist() == confidence.tolist()
        assert table["predicted"].to_pylist() == names
        assert table["label"].to_pylist() == [CLASSES[i] for i in scores.labels]


def test_real_outputs_are_read(shared_data):
    scores = read_scores(shared_data / "logits" / "jcpeterson_wrn_28_10_cifar10test.npz")
    # The accuracy that the table next to the data gives.
    assert np.mean(scores.logits().argmax(axis=1) == scores.labels) == pytest.approx(0.9624)
    scores = read_scores(shared_data / "logits" / "efficientnet_lite0_ilsvrc2012val5000.npz")
    assert (scores.n, scores.k, scores.values.dtype) == (5000, 1000, np.float16)


def npz(folder, **arrays):
    np.savez(folder / "x.npz", **arrays)
    return folder / "x.npz"


@pytest.mark.parametrize("dtype", ["U", "S"])
def test_labels_by_name_are_looked_up_among_the_classes(tmp_path, dtype):
    classes, labels = np.array(["cat", "dog", "fox"], dtype), np.array(["fox", "cat", "dog"], dtype)
    scores = read_scores(npz(tmp_path, logits=LOGITS, labels=labels, classes=classes))
    assert scores.labels.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"logits": LOGITS, "labels": LABELS[:2]}, "x.npz: labels .* one entry per row: 3 rows, 2"),
        ({"logits": LOGITS, "features": np.zeros((4, 2))}, r"features must have shape \(3, d\)"),
        ({"logits": LOGITS.astype(str)}, r"x.npz: logits must be real numbers"),
        ({"logits": LOGITS, "probabilities": LOGITS}, "either .logits. .* or .probabilities."),
        ({"y": LABELS, "probs": LOGITS}, r"'logits' .* or 'probabilities' .* holds 'probs', 'y'\."),
        ({f"a{i:02}": LABELS for i in range(10)}, r"'a07' and 2 more\."),
        ({}, "it holds nothing"),
        *(
            ({"logits": LOGITS, typed: LABELS}, f"'{typed}', .* rename it '{meant}'")
            for typed, meant in [("label", "labels"), ("Labels", "labels"), ("id", "ids")]
        ),
    ],
)
def test_arrays_that_cannot_be_used_raise(tmp_path, arrays, words):
    with pytest.raises(FileError, match=words):
        read_scores(npz(tmp_path, **arrays))


@pytest.mark.parametrize(
    ("scores", "labels", "features"),
    [
        ("target_logits", "target_labels", "target_features"),
        ("target", "target_labels", "target_features"),
        ("logits", "labels", "features"),
    ],
)
def test_the_siblings_of_an_npy_are_read_with_it(tmp_path, scores, labels, features):
    np.save(tmp_path / f"{scores}.npy", LOGITS)
    np.save(tmp_path / f"{labels}.npy", LABELS)
    np.save(tmp_path / f"{features}.npy", LOGITS[:, :2])
    np.save(tmp_path / "other_labels.npy", LABELS[:1])
    read = read_scores(tmp_path / f"{scores}.npy")
    assert read.input == "logits"
    np.testing.assert_array_equal(read.values, LOGITS)
    np.testing.assert_array_equal(read.labels, LABELS)
    np.testing.assert_array_equal(read.features, LOGITS[:, :2])
    assert read.ids is read.classes is None


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


def test_a_column_of_empty_labels_is_no_labels(tmp_path, suffix):
    columns = {"logit_0": [1.0, 2.0], "logit_1": [0.0, 5.0], "label": [None, None]}
    assert read_scores(table(tmp_path, suffix, columns)).labels is None


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"label": [None, 1, None]}, r"x\.\w+: labels .* or for none; 2 of 3 are"),
        ({"label": ["a", "b", "bb"]}, r"among the 2 classes; 'bb' is not. Did you mean 'b'"),
        ({"probability_a": [1.0] * 3}, "and not both kinds; its columns are 'x', 'logit_a'"),
        ({"logit_a": None, "logit_b": None}, r"logit_<class> or .*; its columns are 'x'"),
        ({"logit_b": None}, "at least two, .*; its columns are 'x', 'logit_a'"),
        *(
            ({typed: [0.0] * 3}, f"holds '{typed}', .*name it '?{meant}")
            for typed, meant in [
                *[("labels", "label"), ("Label", "label"), ("ID", "id")],
                *[("logits_c", "logit_"), ("features_0", "feature_")],
            ]
        ),
    ],
)
def test_tables_that_cannot_be_used_raise(tmp_path, suffix, columns, words):
    whole = {"x": [1.0] * 3, "logit_a": [1.0, 2, 3], "logit_b": [2.0, 1, 2], **columns}
    with pytest.raises(FileError, match=words):
        read_scores(table(tmp_path, suffix, {k: v for k, v in whole.items() if v is not None}))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("logit_a,logit_b\n", r"logits must have shape .* got shape \(0, 2\)"),
        ("logit_a,logit_b,logit_a\n1,2,3\n", "has the column 'logit_a' twice"),
        ("id,logit_a,logit_b,id\n1,2,3,4\n", "has the column 'id' twice"),
        ("logit_a,logit_b\n1,2\n\n3,4,5\n", "line 4: every row must have 2 cells.*has 3"),
        ("logit_a,logit_b\n1,2\n3", "line 3: every row must have 2 cells.*has 1"),
        *(
            (f"id,logit_a,logit_b\n1,2,3\n\n2,3,{cell}\n", "line 4: .* must be numbers")
            for cell in ["abc", "", '"1,5"', "1 2"]
        ),
        *((f"logit_a{mark}logit_b\n1{mark}2\n", "must be separated by commas") for mark in ";\t|"),
        ('id,logit_a,logit_b\n"x,1,2\ny,3,4\n', "could not be read as comma-separated text"),
    ],
)
def test_text_that_cannot_be_used_raises(tmp_path, content, words):
    with pytest.raises(FileError, match=words):
        read_scores(text(tmp_path, content))


@pytest.mark.parametrize(("encoding", "end"), [("utf-8-sig", "\r\n"), ("utf-8", "\r")])
def test_a_byte_order_mark_and_any_line_ends_are_tolerated(tmp_path, encoding, end):
    path = text(tmp_path, end.join(["id, logit_é, logit_b", " x, 1, 2", "y ,3e0,-4", ""]), encoding)
    scores = read_scores(path)
    assert scores.classes == ("é", "b")
    assert scores.ids.tolist() == ["x", "y "]
    assert scores.values.tolist() == [[1, 2], [3, -4]]


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
def test_missing_numbers_in_lists_raise(tmp_path, logits):
    with pytest.raises(FileError, match=r"'logits' must have a .* in every row"):
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
    values = np.random.default_rng(6).standard_normal((1000, 2))
    write_scores(tmp_path / "x.parquet", Scores(values))
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    content[4000] ^= 1
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(FileError, match=r"could not be read as a Parquet file.*checksum"):
        read_scores(tmp_path / "x.parquet")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


@pytest.mark.parametrize("name", ["logits", "labels", "classes"])
def test_pickled_objects_in_an_npz_are_never_loaded(tmp_path, name):
    arrays = {"logits": np.zeros((1, 2)), name: np.array([Bomb()], dtype=object)}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(FileError, match=r"pickled Python objects, .* dtype=str"):
        read_scores(tmp_path / "x.npz")


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_a_bare_pickle_is_never_loaded(tmp_path, suffix):
    (tmp_path / f"x{suffix}").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileError, match="pickled Python objects"):
        read_scores(tmp_path / f"x{suffix}")


def header_only(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


@pytest.mark.parametrize("shape", [(10**15, 10**3), (10**7, 10), (-3, -4)])
def test_a_header_that_promises_more_than_there_is_costs_no_memory(tmp_path, shape):
    (tmp_path / "x.npy").write_bytes(header_only(shape) + b"\0" * 80)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("logits.npy", header_only(shape) + b"\0" * 80)
    for suffix in (".npy", ".npz"):
        with pytest.raises(FileError, match=rf"x{suffix} (could not be read|needs more memory)"):
            read_scores(tmp_path / f"x{suffix}")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A table of 72 MB in several row groups, with its logits and labels."""
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((1_000_000, 9)), rng.integers(0, 9, 1_000_000)
    path = tmp_path_factory.mktemp("large") / "table.parquet"
    columns = {f"logit_{i}": logits[:, i] for i in range(9)}
    pq.write_table(pa.table({"label": labels, **columns}), path, row_group_size=300_001)
    return path, logits, labels


@pytest.mark.slow
def test_a_large_table_is_read_as_a_small_one_is(large):
    path, logits, labels = large
    read = read_scores(path)
    np.testing.assert_array_equal(read.values, logits)
    np.testing.assert_array_equal(read.labels, labels)
    assert (read.classes, read.ids) == (None, None)
    assert read.logits() is not None


@pytest.mark.slow
def test_a_large_table_of_lists_has_lists_of_one_size(large, tmp_path):
    _, logits, labels = large
    lists = pa.FixedSizeListArray.from_arrays(logits.ravel(), 9)
    names = pa.array([f"class {i}" for i in range(9)]).take(pa.array(labels))
    pq.write_table(pa.table({"logits": lists, "id": names}), tmp_path / "lists.parquet")
    read = read_scores(tmp_path / "lists.parquet")
    np.testing.assert_array_equal(read.values, logits)
    assert read.ids[0] == f"class {labels[0]}"
    uneven = pa.chunked_array([lists.cast(pa.list_(pa.float64())), pa.array([[1.0, 2.0]])])
    pq.write_table(pa.table({"logits": uneven}), tmp_path / "uneven.parquet")
    with pytest.raises(FileError, match="list"):
        read_scores(tmp_path / "uneven.parquet")
