"""Slips of the fingers: how many, which, and to which letters."""

from __future__ import annotations

import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shiftcal.corruptions import corrupt_inputs
from shiftcal.corruptions.text import Typos
from shiftcal.corruptions.text.typos import KINDS, NEIGHBOURS
from shiftcal.errors import InputError, UnknownName

LETTERS = "abcdefghijklmnopqrstuvwxyz"
RNG = np.random.default_rng(5)
# No letter stands beside its like, so that every exchange shows.
LONG = ["".join(RNG.permutation(list(LETTERS)).tolist()) for _ in range(400)]


def hits(before, after, kind):
    """How many letters were hit, told from the outside."""
    if kind == "neighbour":
        return sum(a != b for a, b in zip(before, after, strict=True))
    return abs(len(after) - len(before))


@pytest.mark.parametrize("kind", ["neighbour", "drop", "double"])
@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_as_many_letters_are_hit_as_the_strength_says(kind, severity):
    typos = Typos(kinds=[kind])
    after = corrupt_inputs(LONG, typos, severity=severity)
    count = sum(hits(a, b, kind) for a, b in zip(LONG, after, strict=True))
    n = sum(map(len, LONG))
    assert stats.binomtest(count, n, typos.strengths[severity - 1]).pvalue > 1e-5


def test_as_many_letters_are_exchanged_as_the_strength_says():
    pairs = ["ab"] * 8_000  # of each only the first letter has a next one
    after = corrupt_inputs(pairs, Typos(kinds=["transpose"]), severity=3)
    assert set(after) == {"ab", "ba"}
    assert stats.binomtest(after.count("ba"), len(pairs), 0.1).pvalue > 1e-5


def test_all_four_happen_alike():
    words = ["ab"] * 12_000
    after = corrupt_inputs(words, Typos(strengths=[0.05]), severity=1)
    found = Counter()
    for word in after:
        if word == "ba":
            found["transpose"] += 1
        elif word in ("a", "b"):
            found["drop"] += 1
        elif word in ("aab", "abb"):
            found["double"] += 1
        elif len(word) == 2 and word != "ab":
            found["neighbour"] += 1
    first, last = 0.05 / 4, 0.05 / 3  # the last letter has no next one
    wanted = {kind: 12_000 * (first + last) * 0.95 for kind in KINDS}
    wanted["transpose"] = 12_000 * first * 0.95
    for kind, count in found.items():
        # Both letters hit is rarer by far; five standard deviations of a count cover it.
        assert abs(count - wanted[kind]) < 5 * np.sqrt(wanted[kind]), kind


def test_neighbours_are_those_of_the_keyboard():
    assert set(NEIGHBOURS) == set(LETTERS)
    assert {k: set(NEIGHBOURS[k]) for k in "gqpam"} == {
        "g": set("fhtyvb"),
        "q": set("wa"),
        "p": set("ol"),
        "a": set("qwsz"),
        "m": set("njk"),
    }
    for key, near in NEIGHBOURS.items():
        assert all(key in NEIGHBOURS[other] for other in near)
    after = corrupt_inputs(LONG, Typos(kinds=["neighbour"], strengths=[1.0]), severity=1)
    for a, b in zip("".join(LONG), "".join(after), strict=True):
        assert b in NEIGHBOURS[a]


def test_capitals_stay_capitals_and_what_is_no_letter_stays():
    text = ["THE 7 Quick, brown-foxes: 42!\n\t(ok)"]
    after = corrupt_inputs(text, Typos(kinds=["neighbour"], strengths=[1.0]), severity=1)[0]
    assert [c.isupper() for c in after] == [c.isupper() for c in text[0]]
    assert [c for c in after if not c.isalpha()] == [c for c in text[0] if not c.isalpha()]


def test_letters_of_other_scripts_are_dropped_or_exchanged_only():
    text = ["щука"] * 300
    after = corrupt_inputs(text, Typos(strengths=[0.5]), severity=1)
    assert len(set(after)) > 10
    assert all(set(word) <= set(text[0]) for word in after)
    assert all(max(Counter(word).values(), default=0) == 1 for word in after if word)
    assert corrupt_inputs(["щука"], Typos(kinds=["double", "neighbour"]), severity=5) == ["щука"]


def test_a_letter_keeps_its_accent():
    text = ["e\u0301a" * 30]  # e with a mark of its own
    after = corrupt_inputs(text, Typos(strengths=[0.5], kinds=["drop", "transpose"]), severity=1)[0]
    assert after.count("e") == after.count("\u0301") == after.count("e\u0301") < 30


@pytest.mark.parametrize(
    "text", ["", " ", "123 !?", "👩‍👩‍👧 🇩🇪🇫🇷", "\ud800", "日本語のテキスト", "नमस्ते"]
)
def test_any_text_can_be_given(text):
    after = corrupt_inputs([text] * 20, Typos(), severity=5)
    assert all(isinstance(each, str) for each in after)
    if not any(c.isalpha() for c in text):
        assert set(after) == {text}


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60), st.integers(1, 5), st.integers(0, 2**40))
def test_only_letters_are_ever_touched(text, severity, seed):
    (after,) = corrupt_inputs([text], Typos(), severity=severity, seed=seed)
    (again,) = corrupt_inputs([text], Typos(), severity=severity, seed=seed)
    assert after == again

    # A dropped letter takes its marks with it, so marks are left out.
    def others(given):
        return [c for c in given if not c.isalpha() and unicodedata.category(c)[0] != "M"]

    if "\u200d" not in text:
        assert others(after) == others(text)
    assert len(after) <= 2 * len(text)


def test_kinds_that_do_not_exist_are_refused():
    with pytest.raises(UnknownName, match=r"each of the kinds must be one of .* Did you mean 'dr"):
        Typos(kinds=["drops"])
    for kinds in ("drop", []):
        with pytest.raises(InputError, match="kinds must be a list of some of"):
            Typos(kinds=kinds)
    assert "drop" in Typos(kinds=["drop"]).description
