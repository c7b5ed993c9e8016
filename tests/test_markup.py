"""Plain text as Markdown, read back by the parsers of others."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shiftcal.markup import code, heading, inline, paragraphs


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
