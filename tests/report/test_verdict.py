"""Every case of the verdict, and its words."""

from __future__ import annotations

import pytest

from shiftcal.methods.method import Selection
from shiftcal.report.facts import MethodFacts, TargetFacts
from shiftcal.report.verdict import Ranged, judge, printable
from shiftcal.types import Interval

GOOD, BAD = Ranged(0.01, 0.0, 0.02), Ranged(0.2, 0.18, 0.22)


def case(
    *,
    confidence=0.91,
    accuracy=None,
    estimate=(0.58, 0.55, 0.61),
    n=1000,
    flags=(),
    before=None,
    after=None,
    calibrated=0.6,
    ends=(3.0, 6.0),
):
    """A target of mean confidence ``confidence``; with ``accuracy``, one that has labels."""
    gap = Ranged(confidence - (estimate[0] if accuracy is None else accuracy))
    chosen = Selection("rehearsal", 4.5, ends and Interval(4.5, *ends, 0.95))
    return judge(
        TargetFacts("t", n, 10, confidence, None if accuracy is None else Ranged(accuracy)),
        Ranged(*estimate),
        MethodFacts("vanilla", "", "T = 1", chosen, confidence, gap, before),
        MethodFacts("rehearsal", "", "T = 4.5", chosen, calibrated, gap, after),
        frozenset(flags),
    )


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("over", {}),
        ("under", {"confidence": 0.4}),
        ("fine", {"confidence": 0.59}),
        # outside the interval, by less than matters
        ("fine", {"confidence": 0.62, "estimate": (0.605, 0.6, 0.61)}),
        ("unclear", {"confidence": 0.6, "estimate": (0.58, 0.4, 0.8)}),
        (
            "unclear",
            {"confidence": 0.7, "estimate": (0.66, 0.59, 0.76)},
        ),  # 11 points may be missing
        ("fine", {"confidence": 0.7, "estimate": (0.66, 0.61, 0.76)}),
        # a temperature that may be above 1 or below
        ("unclear", {"ends": (0.9, 6.0)}),
        ("unclear", {"confidence": 0.4, "ends": (0.5, 1.0)}),
        ("over", {"ends": None}),
        ("over", {"ends": (0.9, 6.0), "accuracy": 0.7, "before": BAD, "after": GOOD}),
        ("unclear", {"flags": ["one-set"]}),
        ("model", {"flags": ["another-model", "outside-bank"]}),
        ("outside", {"flags": ["outside-bank"]}),
        ("outside", {"flags": ["outside-range"]}),
        ("few", {"n": 99, "flags": ["outside-bank"]}),
        ("over", {"accuracy": 0.7, "before": BAD, "after": GOOD, "flags": ["outside-bank"]}),
        ("under", {"confidence": 0.5, "accuracy": 0.7, "before": BAD, "after": GOOD}),
        ("fine", {"accuracy": 0.9, "before": GOOD, "after": GOOD}),
        ("fine", {"accuracy": 0.9, "before": Ranged(0.05, 0.0, 0.1), "after": GOOD}),
        ("unclear", {"accuracy": 0.9, "before": Ranged(0.06, 0.0, 0.13), "after": GOOD}),
        ("uneven", {"accuracy": 0.9, "before": BAD, "after": GOOD}),
        ("worse", {"accuracy": 0.7, "before": GOOD, "after": BAD}),
        ("worse", {"accuracy": 0.7, "before": Ranged(0.01), "after": Ranged(0.2)}),
        ("over", {"accuracy": 0.7, "before": Ranged(0.2), "after": Ranged(0.01)}),
        ("few", {"n": 50, "accuracy": 0.7, "before": BAD, "after": GOOD}),
    ],
)
def test_each_case_has_its_verdict(kind, given):
    verdict = case(**given)
    assert verdict.kind == kind
    assert verdict.headline.endswith(".")
    # What the numbers do not support is not recommended, and the advice says what would settle it.
    leave = kind in ("unclear", "outside", "model", "few")
    assert verdict.headline.startswith("Leave the confidences as they are: ") is leave
    assert verdict.advice[0].startswith("To settle it: ") is leave
    assert verdict.use is (kind in ("over", "under", "uneven"))
    assert verdict.advice[0].startswith("Use ") is verdict.use


def test_its_words_have_the_numbers_and_recommend_what_helps():
    verdict = case(accuracy=0.7, before=BAD, after=GOOD)
    reason, advice = (text.replace("\u00a0", " ") for text in (verdict.reason, verdict.advice[0]))
    assert "confidence is 91.0 %, accuracy 70.0 % by the labels" in reason
    assert "estimated accuracy 58.0 % (55.0 to 61.0)" in reason
    assert advice.startswith("Use rehearsal, T = 4.5: mean confidence becomes 60.0 %")
    assert "from 20.0 % to 1.0 %" in advice
    assert case(confidence=0.59).headline.endswith("judged without labels.")
    worse = Ranged(0.21, 0.19, 0.23)
    for given in ({"calibrated": 0.2}, {"accuracy": 0.7, "before": BAD, "after": worse}):
        assert not any(one.startswith("Use ") for one in case(**given).advice)
        assert not case(**given).use
    # Within the interval that it had, ECE may not have changed at all.
    assert not case(accuracy=0.7, before=BAD, after=Ranged(0.19, 0.17, 0.21)).use
    # 1.96^2 * 0.58 * 0.42 / 0.05^2 = 374
    assert "label 380 of its rows" in case(flags=["outside-bank"]).advice[0]


def test_names_are_printable():
    assert printable("fog\u202e\x07<b>") == "fog\\u202e\\u0007<b>"
    assert len(printable("x" * 5000)) == 120
    assert printable("lone \udcff").encode() == b"lone \\udcff"
