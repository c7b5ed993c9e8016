"""A page, read back by two markdown parsers of others."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shiftcal.errors import FileError
from shiftcal.report.page import (
    Bullets,
    Code,
    Figure,
    Heading,
    Markdown,
    Page,
    Paragraph,
    to_markdown,
    write_page,
)
from shiftcal.report.tables import Cell, Column, Row, Table

NASTY = r"|\`*_[]{}<>&#~$+-.!:)ab1 ="
SPECIAL = st.text(NASTY, max_size=12).filter(str.strip)


def by_markdown_it(text):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)


def by_python_markdown(text):
    extensions = ["tables", "attr_list", "admonition", "fenced_code"]
    markdown = pytest.importorskip("markdown")
    return markdown.markdown(text, extensions=extensions)


READERS = pytest.mark.parametrize("reader", [by_markdown_it, by_python_markdown])


def elements(html):
    return list(ET.fromstring(f"<page>{html}</page>"))


def flat(text):
    return " ".join(text.split())


def words(element):
    return flat("".join(element.itertext()))


def test_a_page_prints_as_written_here(tmp_path):
    table = Table("", (Column("ECE"),), (Row("SAC", (Cell(1.5),)),))
    page = Page(
        "A run",
        (
            Heading("What came out"),
            Paragraph("Two lines\nof one.\n\n1. is no list."),
            table,
            Figure("figures/mean ece.png", alt="mean [ECE]", caption="Mean ECE."),
            Heading("Plan", level=3),
            Code('name = "a"\n', language="toml"),
            Markdown("- see [the table](ece.csv)\n"),
        ),
    )
    text = write_page(page, tmp_path / "report.md").read_bytes().decode("utf-8")
    assert text == to_markdown(page)
    assert text == "\n".join(
        [
            "# A run",
            "",
            "## What came out",
            "",
            "Two lines of one.",
            "",
            r"1\. is no list.",
            "",
            "|     |  ECE |",
            "| --- | ---: |",
            "| SAC | 1.50 |",
            "",
            r"![mean \[ECE\]](figures/mean%20ece.png)",
            "",
            "Mean ECE.",
            "",
            "### Plan",
            "",
            "```toml",
            'name = "a"',
            "```",
            "",
            "- see [the table](ece.csv)",
            "",
        ]
    )


@READERS
@settings(max_examples=150)
@given(title=SPECIAL, heading=SPECIAL, text=SPECIAL, alt=SPECIAL)
def test_every_text_is_shown_as_it_is(reader, title, heading, text, alt):
    parts = (Heading(heading, level=3), Paragraph(text), Figure("a.png", alt=alt))
    html = reader(to_markdown(Page(title, parts)))
    first, second, third, fourth = elements(html)
    assert [first.tag, second.tag, third.tag, fourth.tag] == ["h1", "h3", "p", "p"]
    assert [words(first), words(second), words(third)] == [flat(title), flat(heading), flat(text)]
    assert fourth.find("img").attrib["alt"] == flat(alt)


@READERS
@pytest.mark.parametrize(
    "start", ["# a", "> a", "- a", "+ a", "* a", "1. a", "1) a", "---", "```", "~~~", "!!! note a"]
)
def test_a_paragraph_starts_nothing_else(reader, start):
    (only,) = elements(reader(to_markdown(Page("t", (Paragraph(start),)))))[1:]
    assert only.tag == "p"
    assert words(only) == start


@READERS
def test_code_is_shown_letter_by_letter_even_if_it_has_fences(reader):
    text = "```toml\na = '<b> & _c_'\n````\n  indented"
    _, code, after = elements(reader(to_markdown(Page("t", (Code(text), Paragraph("after"))))))
    assert "".join(code.itertext()).rstrip("\n") == text
    assert words(after) == "after"


@READERS
@pytest.mark.parametrize("path", ["a b.png", "a(1).png", "50%.png", "ü/[x].png", "a?b#c.png"])
def test_the_link_of_a_figure_leads_to_its_file(reader, path):
    html = reader(to_markdown(Page("t", (Figure(path, alt="a"),))))
    source = elements(html)[1].find("img").attrib["src"]
    assert unquote(source) == path
    assert not {"?", "#"} & set(source)


def test_a_page_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(FileError, match="could not be written"):
        write_page(Page("t", ()), tmp_path / "none" / "report.md")


def test_items_of_a_list_are_shown_as_they_are_in_one_line_each():
    page = Page("A", (Bullets(("a\n\nb *c*", "1. x", "# y")),))
    assert to_markdown(page) == "# A\n\n- a b \\*c\\*\n- 1\\. x\n- \\# y\n"
    assert to_markdown(Page("A", (Bullets(()),))) == "# A\n"
