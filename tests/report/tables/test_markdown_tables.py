"""Markdown of tables, read back by two markdown parsers of others."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shiftcal.report.tables import Cell, Column, Row, Table, to_markdown

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


def test_a_table_prints_as_written_here():
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
def test_every_text_is_shown_as_it_is(reader, texts):
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
    html = reader(to_markdown(table)).replace("<br />", "<br>")
    assert "a<br>| b |<br>c" in html


@READERS
def test_marked_cells_are_bold_and_numbers_stand_to_the_right(reader):
    rows = (Row("a", (Cell(1.0, mark=True), Cell("x", mark=True))), Row("b", (Cell(2.0),) * 2))
    html = reader(to_markdown(Table("", (Column("x"), Column("y")), rows)))
    assert html.count("<strong>") == 2
    assert "<strong>1.00</strong>" in html
    assert html.count("text-align:right") + html.count("text-align: right") == 2 * 3


def test_a_column_of_words_stands_to_the_left_even_if_some_are_missing():
    table = Table("", (Column("x"),), (Row("a", (Cell("word"),)), Row("b", (Cell(None),))))
    assert to_markdown(table).splitlines()[1] == "| --- | ---- |"


def test_no_title_and_no_note_leave_only_the_table():
    text = to_markdown(Table("", (Column("x"),), (Row("a", (Cell(1),)),)))
    assert all(line.startswith("|") for line in text.splitlines())


def test_infinite_numbers_print_as_infinity():
    rows = (
        Row("a", (Cell(float("inf")),)),
        Row("b", (Cell(-float("inf")),)),
        Row("c", (Cell(1.0, -float("inf"), float("inf")),)),
    )
    text = to_markdown(Table("", (Column("x"),), rows))
    assert [line.split("|")[2].strip() for line in text.splitlines()[2:]] == ["∞", "-∞", "1.00 ± ∞"]


def test_words_of_code_stay_readable():
    text = to_markdown(Table("", (Column("p_max"),), (Row("gaussian_noise & co", (Cell(1),)),)))
    assert "gaussian_noise & co" in text
    assert "p_max" in text


def test_a_range_is_printed_by_its_ends_however_even_it_is():
    row = Row("a", (Cell(6.0, 4.0, 8.0, by_ends=True), Cell(6.0, 4.0, 8.0)))
    text = to_markdown(Table("", (Column("range"), Column("interval")), (row,)))
    assert "| 6.00 [4.00, 8.00] |" in text
    assert "| 6.00 ± 2.00 |" in text
