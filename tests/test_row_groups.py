"""Which group a row belongs to, in whatever form it comes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shiftcal.checks import check_row_groups
from shiftcal.errors import InputError


def names_of(groups):
    names, codes = check_row_groups(groups, n=len(groups))
    return [names[code] for code in codes]


@pytest.mark.parametrize(
    "groups",
    [
        ["b", "a", "b"],
        ("b", "a", "b"),
        np.array(["b", "a", "b"]),
        np.array([b"b", b"a", b"b"]),
        np.array(["b", "a", "b"], dtype=object),
        np.array(["b", "a", "b"], dtype=np.dtypes.StringDType()),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Categorical(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], index=[7, 8, 9], dtype="string"),
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_names_are_taken_as_they_are_in_the_order_they_come(groups):
    names, codes = check_row_groups(groups, n=3)
    assert names == ("b", "a")
    assert codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "groups",
    [
        [7, 12, 7],
        ["7", "12", "7"],
        ["7", 12, 7.0],
        np.array([7, 12, 7], dtype=np.uint8),
        np.array([7.0, 12.0, 7.0]),
        pd.Series([7, 12, 7]),
        pd.Series([7, 12, 7], dtype="Int64"),
    ],
)
def test_a_whole_number_is_the_text_it_is_written_as(groups):
    assert names_of(groups) == ["7", "12", "7"]


@pytest.mark.parametrize(
    "groups",
    [
        ["a", None],
        ["a", float("nan")],
        ["a", ""],
        [1, None],
        np.array(["a", ""]),
        np.array([1.0, np.nan]),
        np.array(["2024-05-01", "NaT"], dtype="M8[D]"),
        pd.Series(["a", None]),
        pd.Series(["a", pd.NA], dtype="string"),
        pd.Series([1, None]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([pd.Timestamp("2024-05-01"), pd.NaT], dtype=object),
        pd.Categorical(["a", None]),
    ],
)
def test_a_missing_group_is_refused_with_its_row(groups):
    with pytest.raises(InputError, match=r"that of row 1 is missing .* such as 'unknown'"):
        check_row_groups(groups, n=2)


@pytest.mark.parametrize("entry", [1.5, float("inf"), ("site", 3), {"site": 3}, object(), 2j])
def test_an_entry_without_a_text_of_its_own_is_refused(entry):
    with pytest.raises(InputError, match=r"names, whole numbers or dates; that of row 1 .* join"):
        check_row_groups(["a", entry], n=2)


@pytest.mark.parametrize("groups", [None, "north", 3])
def test_one_value_for_all_rows_is_refused(groups):
    with pytest.raises(InputError, match="groups must be an array"):
        check_row_groups(groups, n=3)
