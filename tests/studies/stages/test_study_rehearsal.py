"""Methods tried before anything is scored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toy_study import ALL, toy_plan

from shiftcal.errors import InputError
from shiftcal.studies.plan.plan import MethodPlan
from shiftcal.studies.planned import variants_of
from shiftcal.studies.stages.rehearsal import check_settings, made_up, seconds_of


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("sac", {"distance": "far"}, "distance must be"),
        ("sac", {"peek": 0}, "peek must be"),
        ("sts", {"map": "temperatur"}, "temperature"),
        ("transcal", {"reading": "x"}, "reading must be"),
    ],
)
def test_settings_that_a_method_does_not_take_are_refused(data, name, settings, words):
    plan = replace(toy_plan(data), methods=(MethodPlan(name, "x", settings),))
    with pytest.raises(InputError, match=words):
        check_settings(variants_of(plan, 120))


def test_every_method_is_timed(data):
    variants = variants_of(toy_plan(data, methods=ALL), 120)
    took = seconds_of(variants, made_up(90, 3, 2), bins=5)
    assert len(took) == len(ALL)
    assert all(each > 0 for each in took)


def test_made_up_scores_are_mostly_right_and_always_the_same():
    some = made_up(60, 3, 2)
    assert some.logits.shape == (60, 3)
    assert some.features.shape == (60, 2)
    assert (some.logits.argmax(axis=1) == some.labels).mean() > 0.8
    assert (made_up(60, 3, 2).logits == some.logits).all()
