"""The Scores object: what it accepts, refuses and converts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.special import softmax

from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.scores import Scores

LOGITS = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_floats_stay_as_they_came_and_are_not_copied(dtype):
    values = LOGITS.astype(dtype)
    scores = Scores(values)
    assert scores.values is values


@pytest.mark.parametrize("shape", [(3,), (0, 3), (4, 1), (2, 3, 4)])
def test_values_of_another_shape_are_refused(shape):
    with pytest.raises(InputError, match=r"logits must have shape \(n, k\), a row per sample"):
        Scores(np.zeros(shape))


@pytest.mark.parametrize("values", [[["a", "b"]], [[1j, 2]], [[True, False]]])
def test_values_that_are_no_real_numbers_are_refused(values):
    with pytest.raises(InputError, match="probabilities must be real numbers; got dtype"):
        Scores(np.array(values), "probabilities")


def test_an_unknown_kind_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'logits'"):
        Scores(LOGITS, "logit")


def test_labels_become_indices_and_are_checked():
    scores = Scores(LOGITS, labels=np.array([2.0, 0.0], dtype=np.float32))
    assert scores.labels.dtype == np.intp
    assert scores.labels.tolist() == [2, 0]
    with pytest.raises(InputError, match=r"labels must lie in 0\.\.2"):
        Scores(LOGITS, labels=np.array([0, 3]))
    with pytest.raises(InputError, match="2 rows, 3 labels"):
        Scores(LOGITS, labels=np.array([0, 1, 2]))


@pytest.mark.parametrize("shape", [(2,), (3, 4), (2, 0), (2, 2, 2)])
def test_features_need_a_row_per_sample(shape):
    with pytest.raises(InputError, match=r"features must have shape \(2, d\)"):
        Scores(LOGITS, features=np.zeros(shape))


def test_ids_are_text_from_text_bytes_or_whole_numbers():
    assert Scores(LOGITS, ids=np.array([b"a", "ü".encode()])).ids.tolist() == ["a", "ü"]
    assert Scores(LOGITS, ids=np.array([7, 12])).ids.tolist() == ["7", "12"]
    with pytest.raises(InputError, match=r"ids must have one entry per row, shape \(2,\)"):
        Scores(LOGITS, ids=np.array(["a"]))
    with pytest.raises(InputError, match="ids must be text or whole numbers; got dtype float64"):
        Scores(LOGITS, ids=np.array([0.5, 1.5]))
    with pytest.raises(InputError, match="ids must be text in UTF-8"):
        Scores(LOGITS, ids=np.array([b"a", b"\xff"]))


def test_classes_name_every_column_once():
    assert Scores(LOGITS, classes=["cat", "dog", "red fox"]).classes == ("cat", "dog", "red fox")
    assert Scores(LOGITS, classes=np.array([b"a", b"b", b"c"])).classes == ("a", "b", "c")
    with pytest.raises(InputError, match=r"classes must name the 3 columns .*; got 2 names"):
        Scores(LOGITS, classes=("cat", "dog"))
    with pytest.raises(InputError, match="'cat' comes twice"):
        Scores(LOGITS, classes=("cat", "dog", "cat"))
    with pytest.raises(InputError, match="that of column 1 is empty"):
        Scores(LOGITS, classes=("cat", "", "dog"))
    with pytest.raises(InputError, match=r"list of 3 names; .* np.array\(names, dtype=str\)"):
        Scores(LOGITS, classes=np.array([3, 7, 9]))


def test_logits_become_probabilities_by_softmax():
    converted = Scores(LOGITS, labels=np.array([0, 1]), source="x.npz").as_kind("probabilities")
    # scipy's softmax rounds in another order.
    np.testing.assert_allclose(converted.values, softmax(LOGITS, axis=1), rtol=1e-14)
    assert converted.input == "probabilities"
    assert converted.labels.tolist() == [0, 1]
    assert converted.source == "x.npz"


def test_probabilities_become_logits_with_the_same_softmax_even_at_zero():
    p = np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    converted = Scores(p, "probabilities").as_kind("logits")
    assert np.isfinite(converted.values).all()
    # Zero comes back as 1.2e-38.
    np.testing.assert_allclose(softmax(converted.values, axis=1), p, atol=1e-30, rtol=1e-14)


def test_probabilities_called_logits_are_refused_naming_the_file():
    p = softmax(LOGITS, axis=1)
    with pytest.raises(InputError, match="these logits are probabilities") as refused:
        Scores(p).logits()
    assert not isinstance(refused.value, FileError)
    with pytest.raises(FileError, match=r"^run/x.npz: these logits are probabilities"):
        Scores(p, source="run/x.npz").logits()


RENAMED = {
    "x.npz": ("rename the array 'logits' to 'probabilities'", "'probabilities' to 'logits'"),
    "x.safetensors": ("the array 'logits' to 'probabilities'", "'probabilities' to 'logits'"),
    "x.csv": ("columns logit_<class> to probability_<class>", "probability_<class> to logit_"),
    "x.parquet": ("columns logit_<class> to probability_<class>", "probability_<class> to logit_"),
    "x_logits.npy": ("the file to x_probabilities.npy", "probabilities"),
    "logits.npy": ("the file to probabilities.npy", "probabilities"),
    "x.npy": ("the file to x_probabilities.npy", "probabilities"),
    "x_probabilities.npy": ("probabilities", "rename the file to x_logits.npy"),
}


@pytest.mark.parametrize("source", RENAMED)
def test_a_file_of_the_other_kind_is_told_what_to_rename(source):
    probs = softmax(LOGITS, axis=1)
    infinite = np.array([[0.0, -np.inf], [1.0, 2.0]])
    to_probabilities, to_logits = RENAMED[source]
    for scores, words in (
        (Scores(probs, source=source), to_probabilities),
        (Scores(infinite, source=source), to_probabilities),
        (Scores(LOGITS, "probabilities", source=source), to_logits),
    ):
        with pytest.raises(FileError, match=re.escape(words)) as refused:
            scores.logits()
        assert "input=" not in str(refused.value)
        assert str(refused.value).startswith(f"{source}: ")
