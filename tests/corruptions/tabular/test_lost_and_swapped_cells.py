"""Cells that are missing, and cells drawn anew from their column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.impute import SimpleImputer

from shiftcal.corruptions import corrupt_inputs
from shiftcal.corruptions.tabular import CategorySwaps, MissingValues
from shiftcal.errors import InputError, UnknownName

RNG = np.random.default_rng(1)
N = 4000
COLOURS = RNG.choice(["red", "green", "blue", "infra-red"], N, p=[0.6, 0.25, 0.1, 0.05])
FRAME = pd.DataFrame(
    {
        "height": RNG.normal(170, 10, N),
        "visits": RNG.integers(0, 30, N),
        "colour": COLOURS,
        "grade": pd.Categorical(RNG.choice(list("ABC"), N), categories=list("CBA"), ordered=True),
        "smoker": RNG.random(N) < 0.3,
        "score": pd.array(RNG.integers(0, 9, N), dtype="Int64"),
        "sure": pd.array(RNG.random(N) < 0.5, dtype="boolean"),
    }
)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_as_many_cells_are_lost_as_the_strength_says(severity):
    missing = MissingValues().fit(FRAME)
    lost = corrupt_inputs(FRAME, missing, severity=severity).isna()
    for column in lost:
        found = stats.binomtest(int(lost[column].sum()), N, missing.strengths[severity - 1])
        assert found.pvalue > 1e-5
    # Cells are lost one by one: five standard errors of a correlation that is 0.
    apart = np.corrcoef(lost.to_numpy().T) - np.eye(lost.shape[1])
    assert np.abs(apart).max() < 5 / np.sqrt(N)


def test_what_is_left_is_as_it_was():
    after = corrupt_inputs(FRAME, MissingValues().fit(FRAME), severity=3)
    kept = after.notna()
    for column in FRAME:
        before = FRAME[column][kept[column]].tolist()
        assert after[column][kept[column]].tolist() == before
    assert isinstance(after["grade"].dtype, pd.CategoricalDtype)
    assert after["score"].dtype == "Int64"
    assert after["sure"].dtype == "boolean"


def test_a_filled_cell_is_what_an_imputer_makes_of_a_missing_one():
    given = FRAME[["height", "visits", "colour"]].copy()
    given["visits"] = given["visits"].astype(float)  # the imputer's medians are floats
    lost = corrupt_inputs(given, MissingValues().fit(given), severity=4)
    filled = corrupt_inputs(given, MissingValues(fill="median").fit(given), severity=4)
    for columns, strategy in ((["height", "visits"], "median"), (["colour"], "most_frequent")):
        imputer = SimpleImputer(strategy=strategy).fit(given[columns])
        wanted = imputer.transform(lost[columns])
        assert (filled[columns].to_numpy() == wanted).all()


def test_filling_keeps_the_types():
    filled = corrupt_inputs(FRAME, MissingValues(fill="median").fit(FRAME), severity=5)
    assert filled.dtypes.equals(FRAME.dtypes)
    assert not filled.isna().any(axis=None)


@pytest.mark.parametrize(
    ("rows", "dtype"),
    [
        (np.arange(40).reshape(20, 2), np.float64),
        (np.arange(40).reshape(20, 2) % 2 == 0, np.float64),
        (np.arange(40, dtype=np.float32).reshape(20, 2), np.float32),
        (np.array([["a", "bc"]] * 20), np.object_),
        (np.array([["a", 1]] * 20, dtype=object), np.object_),
    ],
)
def test_arrays_become_what_can_hold_a_missing_value(rows, dtype):
    after = corrupt_inputs(rows, MissingValues().fit(rows), severity=5)
    assert after.dtype == dtype
    lost = pd.isna(after)
    assert 0 < lost.sum() < lost.size
    assert (after[~lost] == rows[~lost]).all()
    filled = corrupt_inputs(rows, MissingValues(fill="median").fit(rows), severity=5)
    assert filled.dtype == rows.dtype
    assert not pd.isna(filled).any()


def test_what_is_missing_already_stays_so():
    rows = np.array([[np.nan], [1.0]] * 50)
    filled = corrupt_inputs(rows, MissingValues(fill="median").fit(rows), severity=5)
    np.testing.assert_array_equal(np.isnan(filled), np.isnan(rows))
    nothing = np.full((9, 1), np.nan)
    filled = corrupt_inputs(nothing, MissingValues(fill="median").fit(nothing), severity=5)
    assert np.isnan(filled).all()


def test_an_unknown_fill_is_refused():
    with pytest.raises(UnknownName, match="fill must be one of 'nan', 'median'; got 'mean'"):
        MissingValues(fill="mean")


def test_only_a_corruption_that_leaves_missing_values_says_so():
    assert MissingValues().may_lose_values
    assert not MissingValues(fill="median").may_lose_values
    assert not CategorySwaps().may_lose_values


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_swaps_keep_the_shares_of_the_categories_and_change_as_many_as_they_should(severity):
    swaps = CategorySwaps().fit(FRAME)
    assert [c.label for c in swaps.columns_] == ["colour", "grade", "smoker", "sure"]
    after = corrupt_inputs(FRAME, swaps, severity=severity)
    assert after.dtypes.equals(FRAME.dtypes)
    for column in ("colour", "smoker"):
        shares = FRAME[column].value_counts(normalize=True)
        expected = swaps.strengths[severity - 1] * (1 - (shares**2).sum())
        changed = int((after[column] != FRAME[column]).sum())
        assert stats.binomtest(changed, N, expected).pvalue > 1e-5
        counts = after[column].value_counts().reindex(shares.index)
        assert stats.chisquare(counts, N * shares).pvalue > 1e-5
    for column in ("height", "visits", "score"):
        assert after[column].equals(FRAME[column])


def test_numbers_are_swapped_if_they_are_named():
    swaps = CategorySwaps(columns=["height", "score"], strengths=[1.0]).fit(FRAME)
    after = corrupt_inputs(FRAME, swaps, severity=1)
    assert set(after["height"]) <= set(FRAME["height"])
    assert after["score"].dtype == "Int64"
    assert stats.ks_2samp(after["height"], FRAME["height"]).pvalue > 1e-4
    codes = np.array([[1, 10], [2, 20], [3, 30]] * 30)
    after = corrupt_inputs(codes, CategorySwaps(columns=[1]).fit(codes), severity=5)
    assert after.dtype == codes.dtype
    assert set(after[:, 1].tolist()) == {10, 20, 30}
    np.testing.assert_array_equal(after[:, 0], codes[:, 0])


@pytest.mark.parametrize("severity", [1, 3])
def test_any_reference_row_can_be_drawn_however_few_cells_are(severity):
    """Which row is drawn has nothing to do with which cell is, even if the rows are sorted."""
    reference = np.arange(N, dtype=float)[:, None]
    swaps = CategorySwaps(columns=[0]).fit(reference)
    after = corrupt_inputs(np.full((N, 1), -1.0), swaps, severity=severity)
    drawn = after[after >= 0]
    assert stats.kstest(drawn / N, "uniform").pvalue > 1e-4


def test_a_longer_word_than_the_rows_have_is_not_cut():
    reference = np.array([["a"], ["infra-red"]] * 30)
    after = corrupt_inputs(np.array([["a"]] * 30), CategorySwaps().fit(reference), severity=5)
    assert set(after.ravel().tolist()) == {"a", "infra-red"}


def test_missing_categories_are_not_found_again():
    frame = pd.DataFrame({"colour": ["red", None, "blue", None] * 20})
    after = corrupt_inputs(frame, CategorySwaps(strengths=[1.0]).fit(frame), severity=1)
    assert after["colour"].isna().equals(frame["colour"].isna())


def test_rows_whose_categories_are_others_are_refused():
    one = pd.DataFrame({"grade": pd.Categorical(list("AB") * 20)})
    other = pd.DataFrame({"grade": pd.Categorical(list("XY") * 20)})
    with pytest.raises(InputError, match=r"column 'grade' must be able to hold .* the same type"):
        corrupt_inputs(other, CategorySwaps().fit(one), severity=5)
