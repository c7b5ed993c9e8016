"""Every case of the verdict, its words, and the meaning of flags."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import shiftcal
from shiftcal.methods.method import Selection
from shiftcal.report.facts import EstimateFacts, MethodFacts, Ranged, TargetFacts
from shiftcal.report.verdict import MEANINGS, explain_flags, judge, printable_name
from shiftcal.types import Flag, Interval


def method(name, confidence, ece=None, gap=None):
    return MethodFacts(
        name, "", "", 1.0, None, None, confidence, gap, ece, n_changed=0, bins=(), shares=()
    )


def case(
    *,
    confidence=0.91,
    accuracy=None,
    estimate=(0.58, 0.55, 0.61),
    n=1000,
    flags=(),
    before=None,
    after=None,
):
    """A target of mean confidence ``confidence``; with ``accuracy``, one that has labels."""
    gap = (
        None
        if accuracy is None
        else Ranged(confidence - accuracy, confidence - accuracy, confidence - accuracy)
    )
    labelled = None if accuracy is None else Ranged(accuracy, accuracy - 0.01, accuracy + 0.01)
    return {
        "target": TargetFacts("t", n, 10, confidence, labelled),
        "estimate": None if estimate is None else EstimateFacts(*estimate, 0.95, "rehearsed"),
        "raw": method("vanilla", confidence, before, gap),
        "method": method("rehearsal", 0.6, after, gap),
        "selection": Selection(
            "rehearsal", temperature=4.5, temperature_interval=Interval(4.5, 4.1, 4.9, level=0.95)
        ),
        "flags": frozenset(flags),
    }


GOOD, BAD = Ranged(0.01, 0.0, 0.02), Ranged(0.2, 0.18, 0.22)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("over", case()),
        ("under", case(confidence=0.4)),
        ("fine", case(confidence=0.59)),
        (
            "fine",
            case(confidence=0.62, estimate=(0.605, 0.6, 0.61)),
        ),  # outside the interval, by less than matters
        ("unclear", case(confidence=0.6, estimate=(0.58, 0.4, 0.8))),
        ("unclear", case(confidence=0.7, estimate=(0.66, 0.59, 0.76))),  # 11 points may be missing
        ("fine", case(confidence=0.7, estimate=(0.66, 0.61, 0.76))),
        ("unclear", case(estimate=None)),
        ("outside", case(flags=["outside-bank"])),
        ("outside", case(flags=["outside-range"])),
        ("few", case(n=99)),
        ("few", case(n=99, flags=["outside-bank"])),
        ("over", case(accuracy=0.7, before=BAD, after=GOOD)),
        ("over", case(accuracy=0.7, before=BAD, after=GOOD, flags=["outside-bank"])),
        ("under", case(confidence=0.5, accuracy=0.7, before=BAD, after=GOOD)),
        ("fine", case(accuracy=0.9, before=GOOD, after=GOOD)),
        ("fine", case(accuracy=0.9, before=Ranged(0.05, 0.0, 0.1), after=GOOD)),
        ("unclear", case(accuracy=0.9, before=Ranged(0.06, 0.0, 0.13), after=GOOD)),
        ("uneven", case(accuracy=0.9, before=BAD, after=GOOD)),
        ("worse", case(accuracy=0.7, before=GOOD, after=BAD)),
        ("worse", case(accuracy=0.7, before=Ranged(0.01), after=Ranged(0.2))),
        ("over", case(accuracy=0.7, before=Ranged(0.2), after=Ranged(0.01))),
        ("few", case(n=50, accuracy=0.7, before=BAD, after=GOOD)),
    ],
)
def test_each_case_has_its_verdict(kind, given):
    verdict = judge(**given)
    assert verdict.kind == kind
    assert verdict.headline.endswith(".")
    assert verdict.advice


def sentences(**given):
    verdict = judge(**given)
    return [text.replace("\u00a0", " ") for text in (verdict.reason, *verdict.advice)]


def test_without_labels_the_estimate_is_given():
    assert sentences(**case()) == [
        "Mean confidence is 91 %, estimated accuracy 58 % (55 to 61).",
        "Use rehearsal, T = 4.5 (4.1 to 4.9): mean confidence becomes 60 %.",
    ]
    assert judge(**case(confidence=0.59)).headline.endswith("judged without labels.")
    assert "off by 4 points at most. Rehearsal, " in sentences(**case(confidence=0.59))[1]


def test_with_labels_both_accuracies_and_the_effect_are_given():
    reason, use, effect = sentences(**case(accuracy=0.7, before=BAD, after=GOOD))
    assert reason == (
        "Mean confidence is 91 %, accuracy 70 % (69 to 71) by the labels. "
        "Estimated without labels: 58 % (55 to 61)."
    )
    assert use.startswith("Use rehearsal")
    assert "falls from 20.0 to 1.0 points" in effect
    assert "rises from 1.0 to 20.0" in sentences(**case(accuracy=0.7, before=GOOD, after=BAD))[1]


def test_a_calibration_that_does_not_help_is_not_recommended():
    _, first, effect, last = sentences(
        **case(accuracy=0.7, before=BAD, after=Ranged(0.21, 0.19, 0.23))
    )
    assert first.startswith("Rehearsal, T = 4.5 (4.1 to 4.9), does not fix it")
    assert "rises from 20.0 to 21.0 points" in effect
    assert last.startswith("Fit a map on these labels instead")
    away = sentences(**{**case(), "method": method("sac", 0.2)})  # the estimate is 0.58
    assert "does not fix it" in away[1]
    assert "other methods" in away[2]


def test_a_chosen_set_is_named_and_hostile_names_are_escaped():
    chosen = Selection("sac", temperature=4.5, index=3, n_sets=6, set_name="fog\u202e\n<b>")
    given = {**case(), "selection": chosen, "method": method("sac", 0.6)}
    assert "Use sac with set 4 of 6 (fog\\u202e\\u000a<b>), T = 4.5" in sentences(**given)[1]
    assert len(printable_name("x" * 5000)) == 120
    assert printable_name("lone \udcff").encode() == b"lone \\udcff"


def test_every_flag_has_a_meaning_and_a_remedy():
    codes = set()
    source = Path(shiftcal.__file__).parent
    for file in (*source.rglob("methods/**/*.py"), source / "estimates.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Flag":
                codes.add(getattr(node.args[0], "value", None))
    assert len(codes) > 5
    assert codes - {None} <= set(MEANINGS)


def test_a_flag_is_given_once_and_serious_ones_come_first():
    raised = {
        "sac": [Flag("not-monotone", "rises"), Flag("outside-range", "below, says sac")],
        "rehearsal": [Flag("outside-range", "below"), Flag("like-clean", "alike")],
        "ace": [Flag("fit", "stuck"), Flag("fit", "stuck"), Flag("new-code", "something")],
        "the estimate": [Flag("outside-range", "below too")],
    }
    first, *others = explain_flags(raised, serious=frozenset({"rehearsal", "the estimate"}))
    assert (first.code, first.serious) == ("outside-range", True)
    assert first.by == ("rehearsal", "the estimate")
    assert first.messages == ("below", "below too")
    assert [one.code for one in others] == ["not-monotone", "like-clean", "fit", "new-code"]
    assert not any(one.serious for one in others)
    assert others[2].messages == ("stuck",)
    assert others[3].meaning
