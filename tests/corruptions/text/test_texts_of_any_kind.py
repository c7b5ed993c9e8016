"""Texts come out in what they came in, and what is no text is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shiftcal.corruptions import corrupt_inputs
from shiftcal.errors import InputError

TEXTS = ["one two three four", "five six seven eight", "nine ten eleven twelve"]
# numpy 1 has no texts of any length but objects.
LONG_TEXTS = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else object
WANTED = corrupt_inputs(TEXTS, "typos", severity=5)


@pytest.mark.parametrize(
    "given",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pytest.param(np.array(TEXTS, dtype=LONG_TEXTS), id="StringDType"),
        pd.Series(TEXTS, index=[5, 6, 9], name="text"),
        pd.Series(TEXTS, dtype=object),
        pd.Series(TEXTS, dtype="string"),
    ],
)
def test_the_container_stays(given):
    after = corrupt_inputs(given, "typos", severity=5)
    assert type(after) is type(given)
    assert list(after) == WANTED
    if isinstance(given, pd.Series):
        assert after.index.equals(given.index)
        assert after.name == given.name
    if hasattr(given, "dtype") and given.dtype != np.array(TEXTS).dtype:
        assert after.dtype == given.dtype


def test_numpy_texts_are_plain_texts():
    assert [type(each) for each in corrupt_inputs(list(np.array(TEXTS)), "typos", severity=1)] == [
        str
    ] * 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("one text", r"got one text. Pass \[text\]"),
        (["a", None], "that of row 1 is None. Put ''"),
        (["a", "b", 3.5], "that of row 2 is 3.5"),
        ([b"bytes"], "decode bytes"),
        (pd.Series(["a", None]), "that of row 1 is nan"),
        (np.array([["a"], ["b"]]), r"of shape \(n,\); got shape \(2, 1\)"),
        (pd.DataFrame({"text": ["a"]}), "got DataFrame. Pass the column of texts"),
        ({"text": ["a"]}, "got a mapping"),
        ([], "one at least"),
        ((text for text in TEXTS), r"got generator. Of a generator, pass list\(inputs\)"),
        ({"a", "b"}, "got set"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        corrupt_inputs(given, "typos", severity=1)
