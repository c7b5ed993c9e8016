"""The plans that come with shiftcal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shiftcal import studies
from shiftcal.errors import InputError
from shiftcal.studies.plan.plan import Plan
from shiftcal.studies.plan.reading import read_plan
from shiftcal.studies.plan.text import to_toml
from shiftcal.studies.planned import REGISTRY, study_of, variants_of
from shiftcal.studies.stages.rehearsal import check_settings
from shiftcal.studies.stages.scoring import wanted_of
from shiftcal.studies.variant import CLEAN


def built_in(name):
    return studies.read_plan(studies.plan_text(name)[0], data="/data")


# Those of domain adaptation are of another kind.
NAMES = [name for name in studies.names() if isinstance(built_in(name), Plan)]


@pytest.mark.parametrize("name", NAMES)
def test_its_study_takes_it_and_says_what_is_evaluated(name):
    plan = built_in(name)
    assert study_of(plan).title
    variants = variants_of(plan, 10_000)
    check_settings(variants)
    wanted = wanted_of(plan, variants)
    assert wanted.names[0] == CLEAN
    assert len(set(wanted.names)) == len(wanted.names)
    needed = {each for variant in variants for each in variant.ladder.sets}
    needed |= {target.name for variant in variants for target in variant.targets}
    assert needed <= set(wanted.names)


def test_every_study_has_a_plan():
    assert {built_in(name).study for name in NAMES} == set(REGISTRY.names())


def test_every_plan_says_what_to_get_and_where_to_put_it():
    for name in NAMES:
        plan = built_in(name)
        assert "/data" in plan.data.fetch
        assert all("/data" in each.fetch for each in plan.shifts.sets)


def test_a_plan_that_leaves_nothing_to_test_is_refused():
    with pytest.raises(InputError, match=r"calibrates on 5,000 images, and there are 5,000 in all"):
        variants_of(built_in("synthetic"), 5000)


def test_a_plan_that_compares_nothing_is_refused():
    with pytest.raises(InputError, match="compares nothing"):
        variants_of(replace(built_in("synthetic"), methods=()), 10_000)


def test_two_lines_of_the_same_method_and_settings_are_refused():
    plan = built_in("synthetic")
    twice = replace(plan.methods[1], label="another TS")
    with pytest.raises(InputError, match="'TS' with 'another TS', and they are the same"):
        variants_of(replace(plan, methods=(*plan.methods, twice)), 10_000)


def test_options_that_a_study_has_not_are_named():
    with pytest.raises(InputError, match=r"no option 'sizs'.*sizes"):
        study_of(replace(built_in("peek"), options={"sizs": [3]}))


def test_fewer_test_images_than_bins_are_refused():
    with pytest.raises(InputError, match="leaves 14 images for the test, and the ECE has 15 bins"):
        variants_of(built_in("synthetic"), 5014)
    assert variants_of(built_in("synthetic"), 5015)


def test_a_plan_that_compares_nothing_is_named():
    text = to_toml(replace(built_in("synthetic"), methods=()))
    with pytest.raises(InputError, match=r"^mine\.toml compares nothing"):
        variants_of(read_plan(text, where="mine.toml"), 10_000)


def test_methods_that_learn_from_surrogate_sets_are_refused_without():
    plan = built_in("synthetic")
    none = replace(plan, calibration=replace(plan.calibration, severities=()))
    with pytest.raises(InputError, match=r"\[calibration\] severities must name one.* STS"):
        variants_of(none, 10_000)
    alone = tuple(each for each in plan.methods if each.name in ("vanilla", "ts", "oracle"))
    assert variants_of(replace(none, methods=alone), 10_000)


def test_shifts_that_are_all_left_out_are_refused():
    plan = built_in("synthetic")
    same = replace(plan.shifts, corruptions=(plan.calibration.corruption,))
    with pytest.raises(InputError, match="which is left out; got pixelate alone"):
        variants_of(replace(plan, shifts=same), 10_000)
    clean = replace(plan.shifts, corruptions=(), severities=(0,))
    assert variants_of(replace(plan, shifts=clean), 10_000)
