"""Where a text is cut: as the regex package does it, which follows Unicode's rules in full."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftcal.corruptions.text._graphemes import graphemes

regex = pytest.importorskip("regex")

SAMPLES = [
    "plain text",
    "cafe\u0301 nai\u0308ve",
    "👩‍👩‍👧‍👦 family",
    "👍🏽 ok ❤️",
    "🇩🇪🇫🇷🇯🇵",
    "🇩🇪x🇫🇷",
    "한국어",
    "\u1112\u1161\u11ab",  # the first of these in parts
    "हिन्दी"[:2],
    "ไทย",
    "日本語",
    "a\u200db",
]


@pytest.mark.parametrize("text", SAMPLES[:10])
def test_they_are_those_of_unicode(text):
    assert graphemes(text) == regex.findall(r"\X", text)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Mn", "Zs", "Po", "Nd"])))
def test_put_together_they_are_the_text_and_no_mark_stands_alone(text):
    parts = graphemes(text)
    assert "".join(parts) == text
    assert all(parts)
    if text and regex.match(r"\p{M}", text) is None:
        assert not any(regex.match(r"\p{M}", part) for part in parts)


def test_what_stands_behind_a_joiner_belongs_to_it():
    assert graphemes("a\u200db") == ["a\u200db"]
