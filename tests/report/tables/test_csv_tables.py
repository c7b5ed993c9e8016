"""CSV of tables, read back by pyarrow and by our own reader."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.errors import FileError
from shiftcal.report.tables import Cell, Column, Row, Table, read_csv, to_csv

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NUMBERS = st.one_of(st.none(), st.floats(allow_nan=False), st.integers(-(10**15), 10**15))


def written(table, folder):
    file = folder / "table.csv"
    file.write_bytes(to_csv(table).encode())
    return file


def test_a_table_prints_as_written_here():
    columns = (Column("clean", unit="%", digits=1), Column("matched", group="V2"), Column("n"))
    rows = (
        Row("TS", (Cell(4.444444444444445, 4.2, 4.7, mark=True), Cell(0.1 + 0.2), Cell(5000))),
        Row('SAC, "ours"', (Cell(None), Cell("failed"), Cell(100, source="run/a.npz"))),
    )
    table = Table("ECE", columns, rows, corner="Method", note="Not in it.")
    assert to_csv(table) == (
        "Method,clean,clean low,clean high,V2 matched,n,n source\r\n"
        "TS,4.444444444444445,4.2,4.7,0.30000000000000004,5000,\r\n"
        '"SAC, ""ours""",,,,failed,100,run/a.npz\r\n'
    )


@given(numbers=st.lists(st.tuples(NUMBERS, TEXTS), min_size=1, max_size=5))
def test_numbers_come_back_to_the_last_bit_and_texts_to_the_last_letter(tmp_path_factory, numbers):
    rows = tuple(Row(label, (Cell(value),)) for value, label in numbers)
    file = written(Table("", (Column("x"),), rows), tmp_path_factory.mktemp("csv"))
    back = read_csv(file)
    assert list(back) == ["label", "x"]
    assert back["label"] == [label for _, label in numbers]
    assert back["x"] == ["" if value is None else value for value, _ in numbers]


def test_pyarrow_reads_the_same(tmp_path):
    reader = pytest.importorskip("pyarrow.csv")
    rows = (
        Row("a, b", (Cell(1 / 3, 1e-300, 0.5), Cell("line\none"))),
        Row('"c"', (Cell(None), Cell("x"))),
    )
    file = written(Table("", (Column("x"), Column("y")), rows), tmp_path)
    options = reader.ParseOptions(newlines_in_values=True)
    assert reader.read_csv(file, parse_options=options).to_pydict() == {
        "label": ["a, b", '"c"'],
        "x": [1 / 3, None],
        "x low": [1e-300, None],
        "x high": [0.5, None],
        "y": ["line\none", "x"],
    }


def test_labels_that_look_like_numbers_stay_text(tmp_path):
    file = written(Table("", (Column("x"),), (Row("2020", (Cell(1.0),)),)), tmp_path)
    assert read_csv(file) == {"label": ["2020"], "x": [1.0]}


def test_infinite_numbers_come_back(tmp_path):
    rows = (Row("a", (Cell(float("inf")),)), Row("b", (Cell(-float("inf")),)))
    assert read_csv(written(Table("", (Column("x"),), rows), tmp_path))["x"] == [
        float("inf"),
        -float("inf"),
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must have a line of headers"),
        (b"a,b\r\n1\r\n", r"rows of \[1, 2\] fields"),
        (b"a,a\r\n1,2\r\n", "a header of its own"),
        (b"a,b\r\n\xff,1\r\n", "must be CSV in UTF-8"),
        (b'a,b\r\n"1,2', "must be CSV in UTF-8"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, words):
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    with pytest.raises(FileError, match=words):
        read_csv(file)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileError, match=r"nothing.csv could not be read: .*Check the path"):
        read_csv(tmp_path / "nothing.csv")


def test_fields_longer_than_the_readers_limit_are_refused_not_cut(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a,b\n" + "x" * (csv.field_size_limit() + 1) + ",1\n")
    with pytest.raises(FileError, match="must be CSV"):
        read_csv(file)
