"""Every case of the verdict, and the words and numbers it is told in."""

from __future__ import annotations

import dataclasses

import pytest

from shiftcal._types import Interval
from shiftcal.methods._selection import Selection
from shiftcal.report.html.evidence import MethodFacts
from shiftcal.report.html.parts import EstimateFacts, Ranged, TargetFacts
from shiftcal.report.html.verdict import Case, judge


def method(name, confidence, ece=None, gap=None):
    return MethodFacts(
        name, "", "", 1.0, None, None, confidence, gap, ece, n_changed=0, bins=(), shares=()
    )


def case(
    *, sure=0.91, right=None, estimate=(0.58, 0.55, 0.61), n=1000, flags=(), before=None, after=None
):
    """A target of mean confidence ``sure``; with ``right``, one that has labels."""
    gap = None if right is None else Ranged(sure - right, sure - right, sure - right)
    return Case(
        TargetFacts(
            "t", n, 10, sure, None if right is None else Ranged(right, right - 0.01, right + 0.01)
        ),
        None if estimate is None else EstimateFacts(*estimate, 0.95, "rehearsed"),
        method("vanilla", sure, before, gap),
        method("rehearsal", 0.6, after, gap),
        Selection(
            "rehearsal", temperature=4.5, temperature_interval=Interval(4.5, 4.1, 4.9, level=0.95)
        ),
        frozenset(flags),
    )


GOOD, BAD = Ranged(0.01, 0.0, 0.02), Ranged(0.2, 0.18, 0.22)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("over", case()),
        ("under", case(sure=0.4)),
        ("fine", case(sure=0.59)),
        (
            "fine",
            case(sure=0.62, estimate=(0.605, 0.6, 0.61)),
        ),  # outside the interval, by less than matters
        ("unclear", case(sure=0.6, estimate=(0.58, 0.4, 0.8))),
        ("unclear", case(sure=0.7, estimate=(0.66, 0.59, 0.76))),  # 11 points may be missing
        ("fine", case(sure=0.7, estimate=(0.66, 0.61, 0.76))),
        ("unclear", case(estimate=None)),
        ("outside", case(flags=["outside-bank"])),
        ("outside", case(flags=["outside-range"])),
        ("few", case(n=99)),
        ("few", case(n=99, flags=["outside-bank"])),
        ("over", case(right=0.7, before=BAD, after=GOOD)),
        ("over", case(right=0.7, before=BAD, after=GOOD, flags=["outside-bank"])),
        ("under", case(sure=0.5, right=0.7, before=BAD, after=GOOD)),
        ("fine", case(right=0.9, before=GOOD, after=GOOD)),
        ("fine", case(right=0.9, before=Ranged(0.05, 0.0, 0.1), after=GOOD)),
        ("unclear", case(right=0.9, before=Ranged(0.06, 0.0, 0.13), after=GOOD)),
        ("uneven", case(right=0.9, before=BAD, after=GOOD)),
        ("worse", case(right=0.7, before=GOOD, after=BAD)),
        ("worse", case(right=0.7, before=Ranged(0.01), after=Ranged(0.2))),
        ("over", case(right=0.7, before=Ranged(0.2), after=Ranged(0.01))),
        ("few", case(n=50, right=0.7, before=BAD, after=GOOD)),
    ],
)
def test_each_case_has_its_verdict(kind, given):
    told = judge(given)
    assert told.kind == kind
    assert told.headline.endswith(".")
    assert told.advice


def plain(text):
    return text.replace("\u00a0", " ")


def test_the_numbers_are_told_in_one_sentence():
    told = judge(case())
    assert plain(told.reason) == (
        "The model is 91 % sure on average, and its estimated accuracy is 58 % (55 to 61)."
    )
    assert plain(told.advice[0]) == (
        "Use rehearsal, T = 4.5 (4.1 to 4.9): mean confidence becomes 60 %."
    )


def test_labels_are_told_beside_what_was_estimated():
    told = judge(case(right=0.7, before=BAD, after=GOOD))
    assert plain(told.reason) == (
        "The model is 91 % sure on average and right in 70 % of the rows (69 to 71), by their "
        "labels. Without labels 58 % (55 to 61) was estimated."
    )
    assert "falls from 20.0 to 1.0 points" in told.advice[1]
    assert (
        "rises from 1.0 to 20.0 points" in judge(case(right=0.7, before=GOOD, after=BAD)).advice[0]
    )


def test_a_choice_among_sets_names_the_set():
    chosen = Selection("sac", temperature=4.5, index=3, n_sets=6, set_name="fog <b>")
    given = dataclasses.replace(case(), selection=chosen, method=method("sac", 0.6))
    assert "Use sac with set 4 of 6 (fog <b>), T = 4.5: mean" in judge(given).advice[0]


def test_without_labels_no_more_is_promised_than_the_mean_tells():
    assert judge(case(sure=0.59)).headline.endswith("as far as can be told without labels.")
    measured = judge(case(right=0.9, before=GOOD, after=GOOD))
    assert measured.headline == "The raw confidences can be trusted."


def test_a_calibration_that_does_not_help_is_not_recommended():
    told = judge(case(right=0.7, before=BAD, after=Ranged(0.21, 0.19, 0.23)))
    assert told.kind == "over"
    assert plain(told.advice[0]) == (
        "Rehearsal, T = 4.5 (4.1 to 4.9), does not mend it: mean confidence becomes 60 %."
    )
    assert "rises from 20.0 to 21.0 points" in told.advice[1]
    assert told.advice[2].startswith("Fit a map on these labels instead")
    away = judge(dataclasses.replace(case(), method=method("sac", 0.2)))  # 58 was estimated
    assert away.kind == "over"
    assert "does not mend it" in away.advice[0]
    assert "other methods" in away.advice[1]
    same = judge(case(right=0.7, before=BAD, after=BAD))
    assert "stays at 20.0 points" in same.advice[1]


def test_what_may_be_wrong_with_a_mean_that_is_trusted_is_told():
    told = plain(judge(case(sure=0.59)).advice[0])
    assert told.startswith(
        "Nothing has to be done: by its interval the mean is off by 4 points at most. Rehearsal, "
    )
    assert ", would make the mean confidence 60 %." in told


def test_what_nobody_can_say_is_not_called_fine():
    for given in (case(sure=0.58, flags=["outside-bank"]), case(sure=0.58, n=10)):
        told = judge(given)
        assert told.headline.startswith("Cannot say")
        assert any("as a guess" in sentence for sentence in told.advice)
