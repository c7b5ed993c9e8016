"""Pieces of HTML for notebooks, and plain text as Markdown, read back by parsers of others."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from html_words import HOSTILE, Reader
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shiftcal.markup import code, facts, heading, inline, paragraphs, piece, remarks, table

ROWS = [("a", 1), ("b", 2), ("c", 3)]
PIECES = {
    "piece": piece,
    "head": lambda text: table((text, "n"), ROWS, total=3, most=5),
    "rows": lambda text: table(("name", "n"), [(text, text)], total=1, most=5),
    "facts": lambda text: facts([(text, text)]),
    "remarks": lambda text: remarks([(text, text)]),
}


@pytest.mark.parametrize("make", PIECES.values(), ids=PIECES)
def test_what_a_user_wrote_is_shown_and_not_run(make):
    read = Reader(make(HOSTILE))
    assert not read.open
    assert HOSTILE in read.words
    allowed = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert {tag for tag, _ in read.tags} <= allowed
    for _, attributes in read.tags:
        assert set(attributes) <= {"style", "scope", "colspan"}


@pytest.mark.parametrize("make", PIECES.values(), ids=PIECES)
def test_nothing_is_fetched_and_no_colour_is_set(make):
    html = make("text")
    assert not re.search(r"https?:|url\(|@import|src=|href=", html)
    for colour in re.findall(r"(?<!-)color:([^;\"]+)", html):
        assert colour == "inherit"
    for behind in re.findall(r"background[^:]*:([^;\"]+)", html):
        assert behind == "transparent"


def test_a_long_table_is_cut_and_no_more_rows_are_asked_for():
    def rows():
        yield from ((j,) for j in range(3))
        raise AssertionError("one row too many was made")

    read = Reader(table(("n",), rows(), total=1203, most=3, words=0))
    assert read.words == ["n", "0", "1", "2", "... 1,200 more"]


def test_one_row_can_be_marked():
    html = table(("name", "n"), ROWS, total=3, most=3, marked=1)
    bold = [row for row in html.split("<tr>") if "font-weight:600" in row and "<td" in row]
    assert len(bold) == 1
    assert ">b<" in bold[0]


def test_what_is_none_is_left_out_of_facts():
    assert Reader(facts([("a", None), ("b", 0)])).words == ["b", "0"]
    assert facts([("a", None)]) == ""
    assert remarks([]) == ""


def by_markdown_it(text):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)


def by_python_markdown(text):
    markdown = pytest.importorskip("markdown")
    return markdown.markdown(text, extensions=["tables", "attr_list", "admonition", "fenced_code"])


READERS = pytest.mark.parametrize("reader", [by_markdown_it, by_python_markdown])
SPECIAL = st.text(r"|\`*_[]{}<>&#~$+-.!:)ab1 =", max_size=12).filter(str.strip)


def elements(html):
    return list(ET.fromstring(f"<page>{html}</page>"))


def flat(text):
    return " ".join(text.split())


@READERS
@settings(max_examples=150)
@given(title=SPECIAL, text=SPECIAL, alt=SPECIAL)
def test_every_text_is_shown_as_it_is(reader, title, text, alt):
    page = f"{heading(title, level=3)}\n\n{paragraphs(text)}\n\n![{inline(alt)}](a.png)\n"
    first, second, third = elements(reader(page))
    assert [first.tag, second.tag, third.tag] == ["h3", "p", "p"]
    assert ["".join(one.itertext()) for one in (first, second)] == [flat(title), flat(text)]
    assert third.find("img").attrib["alt"] == flat(alt)


@READERS
@pytest.mark.parametrize(
    "start", ["# a", "> a", "- a", "+ a", "* a", "1. a", "1) a", "---", "```", "~~~", "!!! note a"]
)
def test_a_paragraph_starts_nothing_else(reader, start):
    (only,) = elements(reader(paragraphs(start)))
    assert (only.tag, "".join(only.itertext())) == ("p", start)


@READERS
def test_code_is_shown_letter_by_letter_even_if_it_has_fences(reader):
    text = "```toml\na = '<b> & _c_'\n````\n  indented"
    block, after = elements(reader(f"{code(text)}\n\nafter"))
    assert "".join(block.itertext()).rstrip("\n") == text
    assert after.text == "after"
