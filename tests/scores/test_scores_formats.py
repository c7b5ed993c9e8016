"""Every format gives back what was written, and other programs can read it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from shiftcal.errors import InputError
from shiftcal.scores import Scores, read_scores, write_scores

pq = pytest.importorskip("pyarrow.parquet")

FORMATS = [".npz", ".csv", ".parquet", ".safetensors"]
CLASSES = ("Zürich", "red fox", '12" disc, large', "猫")
IDS = ["a,b", 'say "hi"', " leading and trailing ", "", "two\nlines", "cr\ronly", "007", "écran"]


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


def outputs():
    scores = full(kind="probabilities")
    return scores, scores.values.max(axis=1), scores.values.argmax(axis=1)


@pytest.mark.parametrize("suffix", FORMATS)
def test_confidence_and_prediction_beside_the_scores_do_not_disturb_reading(tmp_path, suffix):
    scores, confidence, predicted = outputs()
    path = tmp_path / f"out{suffix}"
    write_scores(path, scores, confidence=confidence, predicted=predicted)
    assert_same(read_scores(path), scores)


def test_numpy_reads_the_npz(tmp_path):
    scores, confidence, predicted = outputs()
    write_scores(tmp_path / "out.npz", scores, confidence=confidence, predicted=predicted)
    with np.load(tmp_path / "out.npz", allow_pickle=False) as file:
        assert set(file.files) == {
            *("probabilities", "labels", "features", "ids", "classes", "confidence", "predicted")
        }
        np.testing.assert_array_equal(file["confidence"], confidence)
        np.testing.assert_array_equal(file["predicted"], predicted)
        assert file["labels"].dtype == file["predicted"].dtype == np.int64


def test_the_csv_module_reads_the_csv_with_names_for_classes(tmp_path):
    scores, confidence, predicted = outputs()
    write_scores(tmp_path / "out.csv", scores, confidence=confidence, predicted=predicted)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:5] == ["id", "label", "predicted", "confidence", "probability_Zürich"]
    assert [row["id"] for row in rows] == IDS
    assert [row["predicted"] for row in rows] == [CLASSES[i] for i in predicted]
    assert [float(row["confidence"]) for row in rows] == confidence.tolist()
    assert [float(row["probability_猫"]) for row in rows] == scores.values[:, 3].tolist()
    assert [float(row["feature_11"]) for row in rows] == scores.features[:, 11].tolist()


def test_pyarrow_reads_the_parquet(tmp_path):
    scores, confidence, predicted = outputs()
    write_scores(tmp_path / "out.parquet", scores, confidence=confidence, predicted=predicted)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["confidence"].to_pylist() == confidence.tolist()
    assert table["predicted"].to_pylist() == [CLASSES[i] for i in predicted]
    assert table["label"].to_pylist() == [CLASSES[i] for i in scores.labels]


def test_safetensors_reads_the_safetensors(tmp_path):
    from safetensors import safe_open

    scores, confidence, predicted = outputs()
    path = tmp_path / "out.safetensors"
    write_scores(path, scores, confidence=confidence, predicted=predicted)
    with safe_open(path, framework="numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("probabilities"), scores.values)
        np.testing.assert_array_equal(file.get_tensor("confidence"), confidence)
        np.testing.assert_array_equal(file.get_tensor("predicted"), predicted)
        assert json.loads(file.metadata()["classes"]) == list(CLASSES)
        assert json.loads(file.metadata()["ids"]) == IDS


def test_what_stands_beside_the_scores_must_fit_them(tmp_path):
    with pytest.raises(InputError, match="confidence must have one entry per row: 8 rows, 2"):
        write_scores(tmp_path / "x.npz", full(), confidence=[0.1, 0.2])
    with pytest.raises(InputError, match=r"must lie in 0\.\.3"):
        write_scores(tmp_path / "x.npz", full(), predicted=[4] * 8)
    assert list(tmp_path.iterdir()) == []


def test_classes_named_by_their_own_numbers_are_in_number_order_in_a_table(tmp_path):
    written = Scores(np.array([[1.0, 2.0, 3.0]]), labels=[0], classes=("2", "0", "1"))
    write_scores(tmp_path / "set.csv", written)
    read = read_scores(tmp_path / "set.csv")
    assert read.classes is None
    assert read.values.tolist() == [[2.0, 3.0, 1.0]]
    assert read.labels.tolist() == [2]
