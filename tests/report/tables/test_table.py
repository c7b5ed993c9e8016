"""What a table refuses, what it marks as best, and how its numbers print."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.errors import InputError
from shiftcal.report.tables import Cell, Column, Row, Table
from shiftcal.report.tables._numbers import half_width, printed


def one_column(values, *, ranked=None, **column):
    ranked = ranked or [True] * len(values)
    rows = [
        Row(f"row {index}", (Cell(value),), ranked=takes_part)
        for index, (value, takes_part) in enumerate(zip(values, ranked, strict=True))
    ]
    return Table("", (Column("ECE", **column),), tuple(rows))


def marks(table):
    return [row.cells[0].mark for row in table.rows]


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_numbers_are_rounded_half_even_from_the_exact_value_and_zero_has_no_sign(value, digits):
    exact = Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)
    expected = f"{abs(exact) if exact == 0 else exact:f}"
    assert printed(value, digits) == expected


@pytest.mark.parametrize("value", [-0.0, -0.001, -0.004999])
def test_minus_nothing_is_never_printed(value):
    assert printed(value, 2) == "0.00"


def test_sides_that_differ_only_by_rounding_noise_are_one_half_width():
    low, high = 0.15 - 0.125, 0.15 + 0.125  # the two differences print as 0.12 and 0.13
    assert printed(0.15 - low, 2) != printed(high - 0.15, 2)
    assert half_width(0.15, low, high, digits=2) in {"0.12", "0.13"}


def test_sides_that_differ_in_print_have_no_common_half_width():
    assert half_width(4.44, 4.2, 4.7, digits=2) is None
    assert half_width(4.44, 4.2, 4.7, digits=0) == "0"


def test_the_best_is_the_lowest_or_the_highest_as_the_column_says():
    assert marks(one_column([3.0, 1.0, 2.0], lower_is_better=True).marked()) == [0, 1, 0]
    assert marks(one_column([3.0, 1.0, 2.0], lower_is_better=False).marked()) == [1, 0, 0]
    assert marks(one_column([3.0, 1.0, 2.0]).marked()) == [0, 0, 0]


def test_all_that_print_like_the_best_are_marked():
    values = [1.004, 1.0, 1.006, 2.0]
    assert marks(one_column(values, lower_is_better=True).marked()) == [1, 1, 0, 0]
    assert marks(one_column(values, lower_is_better=True, digits=3).marked()) == [0, 1, 0, 0]


def test_words_missing_values_and_rows_without_rank_are_never_the_best():
    table = one_column(
        [None, "failed", 1.0, 2.0, 1.0], ranked=[1, 1, 0, 1, 1], lower_is_better=True
    )
    assert marks(table.marked()) == [0, 0, 0, 0, 1]
    assert marks(one_column([None, "failed"], lower_is_better=True).marked()) == [0, 0]


def test_marks_of_before_are_replaced_where_there_is_a_best_and_kept_where_there_is_none():
    row = Row("a", (Cell(5.0, mark=True), Cell(5.0, mark=True)))
    other = Row("b", (Cell(1.0), Cell(1.0)))
    table = Table("", (Column("x", lower_is_better=True), Column("y")), (row, other))
    assert [[cell.mark for cell in row.cells] for row in table.marked().rows] == [[0, 1], [1, 0]]
    assert table.rows[0].cells[0].mark, "the table itself must stay as it was"


def test_groups_are_runs_of_columns():
    columns = tuple(
        Column(name, group=group) for name, group in zip("abcd", ["", "V2", "V2", ""], strict=True)
    )
    assert Table("", columns, ()).groups == (("", 1), ("V2", 2), ("", 1))


def test_numbers_of_numpy_become_pythons_own():
    cell = Cell(np.float64(4.44), np.float32(4.25), np.int64(5))
    assert (type(cell.value), type(cell.low), type(cell.high)) == (float, float, int)
    assert repr(cell.value) == "4.44"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cell(float("nan")), "value of a cell must be a number .*or None"),
        (lambda: Cell(np.array([1.0])), "must be a number"),
        (lambda: Cell(1.0, low="0"), "low of a cell must be a number"),
        (lambda: Cell(1.0, low=0.5), "both ends"),
        (lambda: Cell("failed", 0.5, 1.5), "around a number"),
        (lambda: Cell(1.0, 1.5, 0.5), "low of a cell must not exceed high"),
        (lambda: Column("ECE", digits=-1), "digits of the column 'ECE'"),
        (lambda: Row("SAC", (1.5,)), r"Write Cell\(1.5\)"),
        (lambda: Table("t", (), ()), "at least one column"),
        (lambda: Table("t", (Column("a"),), (Row("SAC", ()),)), "'SAC' must have one cell"),
        (lambda: Table("t", (Column("a"), Column("a")), ()), "'a' heads two columns"),
        (lambda: Table("t", (Column("Method"),), (), corner="Method"), "'Method' heads two"),
        (
            lambda: Table(
                "t",
                (Column("a"), Column("a low")),
                (Row("r", (Cell(1.0, 0.5, 2.0), Cell(0.0))),),
            ),
            "'a low' heads two columns",
        ),
    ],
)
def test_what_cannot_be_a_table_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
