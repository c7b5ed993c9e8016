"""Words that are not there."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shiftcal.corruptions import corrupt_inputs
from shiftcal.corruptions.text import DroppedWords

# Every word once, so that it is seen which are left.
LONG = [" ".join(f"w{i}-{j}" for j in range(100)) for i in range(50)]


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_as_many_words_are_dropped_as_the_strength_says(severity):
    dropped = DroppedWords()
    after = corrupt_inputs(LONG, dropped, severity=severity)
    gone = 5000 - sum(len(text.split()) for text in after)
    assert stats.binomtest(gone, 5000, dropped.strengths[severity - 1]).pvalue > 1e-5


def test_the_words_that_are_left_keep_their_order():
    for before, after in zip(LONG, corrupt_inputs(LONG, "dropped_words", severity=3), strict=True):
        kept = set(after.split())
        assert after == " ".join(word for word in before.split() if word in kept)


def test_spaces_at_the_ends_and_line_breaks_before_words_stay():
    text = "  one two\n\nthree\tfour  \n"
    seen = set()
    for after in corrupt_inputs([text] * 200, DroppedWords(strengths=[0.5]), severity=1):
        assert after.startswith("  ")
        assert after.endswith("  \n")
        assert re.fullmatch(r"\s*(one)?\s?(two)?(\s\s|)(three)?\t?(four)?\s*", after)
        seen.add(after)
    assert "  one\n\nthree  \n" in seen
    assert len(seen) == 2**4 - 1


def test_one_word_is_always_left_and_it_can_be_any():
    after = corrupt_inputs(["a b c d"] * 4000, DroppedWords(strengths=[1.0]), severity=1)
    counts = [after.count(word) for word in "abcd"]
    assert sum(counts) == 4000
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("text", ["", "   ", "word", " word\n", "日本語のテキスト"])
def test_a_text_of_one_word_or_none_stays(text):
    assert corrupt_inputs([text], "dropped_words", severity=5) == [text]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.integers(0, 2**32))
def test_no_word_is_made_up(text, seed):
    (after,) = corrupt_inputs([text], DroppedWords(), severity=4, seed=seed)
    words = iter(text.split())
    assert all(word in words for word in after.split())  # in order: `in` uses up the iterator
    assert bool(after.split()) == bool(text.split())


def test_words_are_dropped_one_by_one():
    kept = np.array(
        [
            [f"w{i}-{j}" in set(text.split()) for j in range(100)]
            for i, text in enumerate(corrupt_inputs(LONG, "dropped_words", severity=4))
        ]
    )
    beside = np.corrcoef(kept[:, :-1].ravel(), kept[:, 1:].ravel())[0, 1]
    assert abs(beside) < 5 / np.sqrt(kept.size)
