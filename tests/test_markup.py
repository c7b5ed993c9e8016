"""Pieces of HTML for notebooks: escaped, cut where they are long, of one colour with the page."""

from __future__ import annotations

import re

import pytest
from html_words import HOSTILE, Reader

from shiftcal.markup import facts, piece, remarks, table

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
