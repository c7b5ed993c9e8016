"""Labels, classes and ids as arrays of Python objects, which is how pandas holds text."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal import Scores, SurrogateBank
from shiftcal import checks as _checks
from shiftcal.errors import InputError

Z = np.array([[4.0, 2.0, -1.0], [0.5, -3.0, 4.0], [2.0, 5.0, 2.0]])
NAMES = ["ant", "bee", "cat"]
TRUTH = ["ant", "cat", "bee"]


def objects(values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def in_pandas(kind):
    pd = pytest.importorskip("pandas")
    return {
        "series": pd.Series,
        "index": pd.Index,
        "categorical": pd.Categorical,
        "category": lambda values: pd.Series(values, dtype="category"),
        "string": lambda values: pd.Series(values, dtype="string"),
        "object": lambda values: pd.Series(values, dtype=object),
    }[kind]


@pytest.fixture(params=["array", "series", "index", "categorical", "category", "string", "object"])
def hold(request):
    return objects if request.param == "array" else in_pandas(request.param)


def test_text_serves_as_labels_classes_and_ids(hold):
    scores = Scores(Z, labels=hold(TRUTH), classes=hold(NAMES), ids=hold(["x", "y", "z"]))
    assert scores.labels.tolist() == [0, 2, 1]
    assert scores.classes == tuple(NAMES)
    assert scores.ids.tolist() == ["x", "y", "z"]
    assert scores.ids.dtype.kind == "U"


def test_text_serves_as_labels_and_classes_of_a_bank(hold):
    bank = SurrogateBank.from_arrays([Z, Z / 2], hold(TRUTH), classes=hold(NAMES))
    assert bank[1].labels.tolist() == [0, 2, 1]
    own = SurrogateBank.from_arrays([Z, Z / 2], [hold(TRUTH), hold(NAMES)], classes=NAMES)
    assert own[1].labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("labels", [[0, 2, 1], [0.0, 2.0, 1.0], [np.int8(0), 2, np.uint64(1)]])
def test_whole_numbers_serve_as_labels(labels):
    assert _checks.check_labels(objects(labels), n=3, k=3).tolist() == [0, 2, 1]
    assert Scores(Z, labels=objects(labels), classes=NAMES).labels.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["ant", None, "bee"], "labels must be all text .*; entry 1 is None"),
        ([float("nan"), "ant", "bee"], "entry 0 is nan.*Fill in what is missing"),
        (["ant", "bee", 1], "entry 2 is 1"),
        ([0, 1, None], "entry 2 is None"),
        ([0, True, 1], "entry 1 is True"),
        ([0, 1, 1.5], "labels must be whole numbers; entry 2 is 1.5"),
        ([0, 1, 2**70], "labels must be class indices"),
        ([0, 1, [2]], r"entry 2 is \[2\]"),
    ],
)
def test_the_first_entry_that_is_something_else_is_named(labels, words):
    with pytest.raises(InputError, match=words):
        Scores(Z, labels=objects(labels), classes=NAMES)


def test_classes_and_ids_name_the_entry_too():
    with pytest.raises(InputError, match=r"classes must be all text .*; entry 1 is None"):
        Scores(Z, classes=["ant", None, "cat"])
    with pytest.raises(InputError, match=r"ids must be all text .*; entry 2 is None"):
        Scores(Z, ids=["x", "y", None])
    with pytest.raises(InputError, match="classes must be a list of 3 names"):
        Scores(Z, classes=objects([1, 2, 3]))
