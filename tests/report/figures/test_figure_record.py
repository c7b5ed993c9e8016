"""Records hold what their annotations say and refuse the rest."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Literal

import numpy as np
import pytest

from shiftcal.errors import InputError
from shiftcal.report.figures._record import Record, from_plain, same_length, to_plain


@dataclass(frozen=True, kw_only=True)
class Inner(Record):
    value: float


@dataclass(frozen=True, kw_only=True)
class Outer(Record):
    inner: tuple[Inner, ...] = ()
    number: float = 0.0
    count: int = 0
    flag: bool = False
    word: Literal["one", "two"] = "one"
    maybe: float | None = None
    either: tuple[float, ...] | tuple[str, ...] = ()


def test_lists_become_tuples_and_any_real_number_a_float():
    made = Outer(number=np.float32(0.5), count=np.int64(3), maybe=2, either=[1, np.float64(2)])
    assert made == Outer(number=0.5, count=3, maybe=2.0, either=(1.0, 2.0))
    kept = (made.number, made.count, made.maybe, *made.either)
    assert [type(value) for value in kept] == [float, int, float, float, float]


def test_it_is_frozen_and_hashable():
    made = Outer(either=("a", "b"))
    assert hash(made) == hash(Outer(either=["a", "b"]))
    with pytest.raises(FrozenInstanceError):
        made.number = 1.0


def test_plain_values_give_the_same_record():
    made = Outer(inner=(Inner(value=1.5),), maybe=None, either=("x",), word="two", flag=True)
    plain = to_plain(made)
    assert plain["inner"] == [{"value": 1.5}]
    assert from_plain(Outer, plain, where="it") == made


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"number": float("nan")}, r"Outer\.number must be a finite number, not nan"),
        ({"number": np.inf}, "finite number, not inf"),
        ({"number": True}, "finite number, not True"),
        ({"number": None}, "finite number, not None"),
        ({"number": "1"}, "finite number, not '1'"),
        ({"count": 1.0}, "whole number, not 1.0"),
        ({"count": True}, "whole number, not True"),
        ({"flag": 1}, "true or false, not 1"),
        ({"word": "three"}, "'one' or 'two', not 'three'"),
        ({"maybe": "x"}, "finite number, not 'x'"),
        ({"either": (1.0, "a")}, r"Outer\.either\[0\] must be text, not 1.0"),
        ({"either": {1.0}}, "a tuple, not"),
        ({"inner": ({"valu": 1.0},)}, r"Outer\.inner\[0\] has no 'valu'. It has: value"),
        ({"inner": ({},)}, r"inner\[0\] is not complete: .*value"),
        ({"inner": (1.0,)}, "must be a table of values, not 1.0"),
    ],
)
def test_anything_else_is_refused_with_its_place(given, words):
    with pytest.raises(InputError, match=words):
        Outer(**given)


def test_lengths_that_differ_are_told_and_none_is_left_out():
    same_length("it", a=(1, 2), b=None, c="xy")
    with pytest.raises(InputError, match=r"it must have as many.*a has 2, b has 1"):
        same_length("it", a=(1, 2), b=(1,))
