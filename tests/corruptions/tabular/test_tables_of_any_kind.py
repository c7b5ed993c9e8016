"""Which columns are found in arrays and frames, and what is refused."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from shiftcal.corruptions import corrupt_inputs
from shiftcal.corruptions.tabular import CategorySwaps, MissingValues, Noise
from shiftcal.corruptions.tabular._kinds import kind_of
from shiftcal.errors import InputError, NotFittedError

DATE = datetime.date(2024, 1, 1)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.array([1.5, 2]), "float"),
        (np.array([1, 2], np.uint8), "integer"),
        (np.array([True, False]), "category"),
        (np.array(["a", "b"]), "category"),
        (np.array([b"a", b"b"]), "category"),
        (np.array([1j]), "other"),
        (np.array(["2024-01-01"], "datetime64[D]"), "other"),
        (np.array([3], "timedelta64[s]"), "other"),
        (np.array([1, 2.5, None], object), "float"),
        (np.array([1, np.int64(2), None], object), "integer"),
        (np.array([True, None], object), "category"),
        (np.array(["a", 1, np.nan], object), "category"),
        (np.array([None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT")], object), "empty"),
        (np.array([DATE, None], object), "other"),
        (np.array([[1], [2, 3]], object), "other"),
        (pd.Series([1, None], dtype="Int64"), "integer"),
        (pd.Series([1.0, None], dtype="Float64"), "float"),
        (pd.Series([True, None], dtype="boolean"), "category"),
        (pd.Series(["a", None], dtype="string"), "category"),
        (pd.Series([1, 2], dtype="category"), "category"),
        (pd.Series(["a", None]), "category"),
        (pd.Series(pd.date_range("2024", periods=2)), "other"),
        (pd.Series(pd.date_range("2024", periods=2, tz="UTC")), "other"),
        (pd.Series([1.0, 0.0], dtype="Sparse[float]"), "other"),
        (pd.Series(pd.period_range("2024", periods=2)), "other"),
        (pd.Series([1.5, None], dtype="double[pyarrow]"), "float"),
        (pd.Series(["a", None], dtype="string[pyarrow]"), "category"),
    ],
)
def test_the_kind_of_a_column(column, kind):
    assert kind_of(column) == kind


def test_objects_in_an_array_stay_of_their_kind():
    rows = np.array([["red", i, i / 2, i % 2 == 0, DATE, None] for i in range(40)], dtype=object)
    for corruption in (Noise(), MissingValues(fill="median"), CategorySwaps(columns=[0, 1, 3])):
        after = corrupt_inputs(rows, corruption.fit(rows), severity=5)
        assert after.dtype == object
        assert not (after == rows).all()
        for j in range(6):
            assert {type(value) for value in after[:, j]} == {type(value) for value in rows[:, j]}
    lost = corrupt_inputs(rows, MissingValues().fit(rows), severity=5)
    assert (lost[:, 4] == rows[:, 4]).all()
    assert pd.isna(lost[:, 0]).any()


def test_columns_of_a_frame_are_known_by_name_whatever_their_order():
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)[::-1], 3: list("xyzxyzxyz")})
    noise = Noise().fit(frame)
    after = corrupt_inputs(frame, noise, severity=5)
    turned = corrupt_inputs(frame[[3, "b", "a"]].assign(new=1), noise, severity=5)
    assert turned[["a", "b", 3]].equals(after)
    assert (turned["new"] == 1).all()


def test_arrow_columns_can_be_changed():
    frame = pd.DataFrame(
        {
            "x": pd.array(np.arange(40.0), dtype="double[pyarrow]"),
            "n": pd.array(np.arange(40), dtype="int32[pyarrow]"),
            "c": pd.array(["a", "b"] * 20, dtype="string[pyarrow]"),
        }
    )
    for corruption in (Noise(), MissingValues(), MissingValues(fill="median"), CategorySwaps()):
        after = corrupt_inputs(frame, corruption.fit(frame), severity=5)
        assert after.dtypes.equals(frame.dtypes)
        assert not after.equals(frame)


NUMBERS = np.arange(12.0).reshape(6, 2)
NAMED = pd.DataFrame({"age": [1.0, 2.0], "colour": ["x", "y"], "when": [DATE, DATE]})


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 2.0]], r"got list. Pass np.asarray\(rows\)"),
        (sparse.csr_matrix(NUMBERS), r"got csr_matrix. Pass rows.toarray\(\)"),
        (pa.table({"a": [1.0]}), r"got Table. Pass rows.to_pandas\(\)"),
        (np.arange(3.0), r"of shape \(n, d\); got shape \(3,\)"),
        (np.ma.masked_equal(NUMBERS, 3.0), r"must not be masked; pass rows.filled"),
        (np.empty((0, 2)), r"must not be empty; got shape \(0, 2\)"),
        (np.empty((2, 0)), r"must not be empty; got shape \(2, 0\)"),
        (pd.DataFrame({"a": []}), "must not be empty"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "different names; 'a' comes twice"),
        (pd.DataFrame({"c": ["x"], "d": [DATE]}), r"hold numbers; .* 'c' \(category\), 'd' \(othe"),
        ("text", "got str"),
        (["a text", "another"], r"got texts\. For those there are .* typos"),
        (np.array(["a text", "another"]), "got texts"),
        (pd.Series(["a text", "another"]), "got texts"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(rows, said):
    with pytest.raises(InputError, match=said):
        Noise().fit(rows)


@pytest.mark.parametrize(
    ("corruption", "rows", "said"),
    [
        (Noise(columns=["agee"]), NAMED, "a column 'agee'; they have not. Did you mean 'age'"),
        (Noise(columns=["colour"]), NAMED, "'colour' holds categories. Leave it out"),
        (MissingValues(columns=["when"]), NAMED, "'when' holds dates or something else"),
        (CategorySwaps(), NUMBERS, r"hold categories; there is none among 0 \(float\)"),
        (Noise(columns=[2]), NUMBERS, "numbered 0 to 1; got 2"),
        (Noise(columns=[-1]), NUMBERS, "numbered 0 to 1; got -1"),
        (Noise(columns=["age"]), NUMBERS, "numbered 0 to 1; got 'age'"),
    ],
)
def test_columns_that_cannot_be_changed_are_refused(corruption, rows, said):
    with pytest.raises(InputError, match=said):
        corruption.fit(rows)


def test_columns_are_named_once_and_one_at_least():
    with pytest.raises(InputError, match="one at least"):
        Noise(columns=[])
    with pytest.raises(InputError, match="once each"):
        Noise(columns=[1, 1])


def test_a_corruption_must_be_fitted_first():
    with pytest.raises(NotFittedError, match=r"Pass Noise\(\).fit\(calibration_rows\)"):
        corrupt_inputs(NUMBERS, Noise(), severity=1)
    with pytest.raises(NotFittedError, match="must see reference rows"):
        corrupt_inputs(NUMBERS, "missing_values", severity=1)


def test_other_rows_than_it_was_fitted_to_are_refused():
    with pytest.raises(InputError, match="the 2 columns that noise was fitted to; got 3"):
        corrupt_inputs(np.ones((2, 3)), Noise().fit(NUMBERS), severity=1)
    with pytest.raises(InputError, match="in an array; got a DataFrame"):
        corrupt_inputs(NAMED, Noise().fit(NUMBERS), severity=1)
    with pytest.raises(InputError, match="in a DataFrame; got an array"):
        corrupt_inputs(NUMBERS, Noise().fit(NAMED), severity=1)
    with pytest.raises(InputError, match="must have a column 'age'"):
        corrupt_inputs(NAMED[["colour"]], Noise().fit(NAMED), severity=1)
    with pytest.raises(InputError, match="column 'age' holds categories"):
        corrupt_inputs(NAMED.assign(age="old"), Noise().fit(NAMED), severity=1)


def test_fitting_does_not_depend_on_what_happens_to_the_rows_later():
    rows = np.array([["a"], ["b"]] * 20)
    swaps = CategorySwaps().fit(rows)
    wanted = corrupt_inputs(rows, swaps, severity=5)
    reference = rows.copy()
    rows[:] = "c"
    np.testing.assert_array_equal(corrupt_inputs(reference, swaps, severity=5), wanted)


def test_pandas_is_not_imported_for_arrays():
    import subprocess
    import sys

    code = (
        "import numpy as np, sys\n"
        "from shiftcal.corruptions import corrupt_inputs, tabular\n"
        "rows = np.arange(8.0).reshape(4, 2)\n"
        "corrupt_inputs(rows, tabular.Noise().fit(rows), severity=1)\n"
        "print([m for m in ('pandas', 'sklearn', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
