"""Tables: what is best, and the three formats, read back."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from decimal import ROUND_HALF_EVEN, Decimal
from html import unescape

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shiftcal.report.tables import (
    Cell,
    Column,
    Row,
    Table,
    number_and_interval,
    printed,
    to_csv,
    to_latex,
    to_markdown,
    write_table,
)

NATURAL = Table(
    "Shifts & 100% of them",
    (
        Column("clean", unit="%", lower_is_better=True),
        Column("matched", unit="%", group="ImageNet-V2", lower_is_better=True),
        Column("top", unit="%", group="ImageNet-V2", lower_is_better=True),
        Column("remark"),
    ),
    (
        Row("[TS]", (Cell(4.444, 4.32, 4.568), Cell(-12.0, -12.5, -10.5), Cell(3.0), Cell("a_b"))),
        Row("*SAC", (Cell(2.0), Cell(None), Cell(3.0), Cell(None))),
    ),
    note="Mean ± 95 %, p ≤ 0.05.",
    corner="Method",
).marked()


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


def test_sides_that_differ_only_by_rounding_noise_are_one_half_width():
    low, high = 0.15 - 0.125, 0.15 + 0.125  # the two differences print as 0.12 and 0.13
    assert printed(0.15 - low, 2) != printed(high - 0.15, 2)
    assert number_and_interval(Cell(0.15, low, high), 2)[1] in {" ± 0.12", " ± 0.13"}


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


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


NUMBERS = st.one_of(st.none(), st.floats(allow_nan=False), st.integers(-(10**15), 10**15))


def test_csv_is_as_written_here():
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
def test_numbers_come_back_to_the_last_bit_and_texts_to_the_last_letter(numbers):
    rows = tuple(Row(label, (Cell(value),)) for value, label in numbers)
    text = to_csv(Table("", (Column("x"),), rows))
    head, *back = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert head == ["label", "x"]
    assert [label for label, _ in back] == [label for _, label in numbers]
    values = [None if not word else float(word) for _, word in back]
    assert values == [value for value, _ in numbers]


def test_numbers_of_numpy_are_numbers():
    cell = Cell(np.float64(0.1), np.float64(0.0), np.float64(0.25))
    text = to_csv(Table("", (Column("x"), Column("n")), (Row("a", (cell, Cell(np.int64(3)))),)))
    assert text.splitlines()[1] == "a,0.1,0.0,0.25,3"


NASTY = r"|\`*_[]{}<>&#~$+-.!:ab1 ="


SPECIAL = st.text(NASTY, max_size=12)


def by_markdown_it(text):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)


def by_python_markdown(text):
    markdown = pytest.importorskip("markdown")
    return markdown.markdown(text, extensions=["tables", "attr_list", "admonition"])


READERS = pytest.mark.parametrize("reader", [by_markdown_it, by_python_markdown])


def grid(html):
    """Texts of the cells of the one table in the HTML, its header first."""
    tree = ET.fromstring(f"<page>{html.replace('<br>', '<br/>')}</page>")
    return [[" ".join("".join(cell.itertext()).split()) for cell in row] for row in tree.iter("tr")]


def flat(text):
    return " ".join(text.split())


def test_markdown_is_as_written_here():
    columns = (
        Column("clean", unit="%", lower_is_better=True),
        Column("matched", unit="%", group="V2", digits=1, lower_is_better=True),
        Column("remark"),
    )
    rows = (
        Row("TS", (Cell(4.444, 4.32, 4.568), Cell(12.0, 11.5, 13.5), Cell("as is"))),
        Row("SAC", (Cell(-0.001), Cell(None), Cell(None))),
    )
    table = Table("ECE", columns, rows, note="Five splits.", corner="Method").marked()
    assert to_markdown(table) == (
        "**ECE**\n"
        "\n"
        "| Method |   clean (%) |       V2: matched (%) | remark |\n"
        "| ------ | ----------: | --------------------: | ------ |\n"
        "| TS     | 4.44 ± 0.12 | **12.0 [11.5, 13.5]** | as is  |\n"
        "| SAC    |    **0.00** |                     – | –      |\n"
        "\n"
        "Five splits.\n"
    )


@READERS
@settings(max_examples=150)
@given(texts=st.lists(SPECIAL, min_size=6, max_size=6))
def test_every_text_shows_in_markdown_as_it_is(reader, texts):
    corner, name, group, label, word, best = texts
    row = Row(label, (Cell(word), Cell(best, mark=True), Cell(1.5)))
    columns = (Column(name, group=group), Column("y y"), Column("z z"))
    table = Table("", columns, (row,), corner=f"{corner} c")
    header, body = grid(reader(to_markdown(table)))
    shown = flat(f"{flat(group)}: {name}") if group else flat(name)
    assert header == [flat(f"{corner} c"), shown, "y y", "z z"]
    assert body == [flat(label), flat(word), flat(best), "1.50"]


@READERS
def test_lines_of_a_cell_stay_in_the_cell(reader):
    table = Table("", (Column("x"),), (Row("a\n| b |\r\nc", (Cell(1.0),)),))
    assert "a<br>| b |<br>c" in unescape(reader(to_markdown(table))).replace("<br />", "<br>")


def test_infinite_numbers_and_ranges_print():
    cells = (Cell(float("inf")), Cell(1.0, -float("inf"), float("inf")))
    cells += (Cell(6.0, 4.0, 8.0, by_ends=True),)
    table = Table("", tuple(map(Column, "xyz")), (Row("a", cells),))
    row = [text.strip() for text in to_markdown(table).splitlines()[2].split("|")]
    assert row[2:5] == ["∞", "1.00 ± ∞", "6.00 [4.00, 8.00]"]


def test_latex_prints_every_text_as_it_is():
    columns = (Column("50 %", digits=1, group="a_b"), Column("x^2"))
    row = Row("R&D {#1} ~ \\", (Cell(2.0, 1.5, 2.5, mark=True), Cell(None)))
    assert to_latex(Table("", columns, (row,), corner="$")) == (
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        "\\$ & a\\_b: 50 \\% & x\\textasciicircum{}2 \\\\\n"
        "\\midrule\n"
        "R\\&D \\{\\#1\\} \\textasciitilde{} \\textbackslash{}"
        " & \\textbf{2.0 $\\pm$ 0.5} & -- \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_the_files_hold_what_the_writers_give(tmp_path):
    files = write_table(NATURAL, tmp_path / "new" / "tables", "main-ece")
    assert [file.name for file in files] == ["main-ece.md", "main-ece.csv"]
    markdown, table = (file.read_bytes().decode("utf-8") for file in files)
    assert markdown == to_markdown(NATURAL)
    assert table == to_csv(NATURAL)
    assert sorted(tmp_path.rglob("*.tmp")) == []
