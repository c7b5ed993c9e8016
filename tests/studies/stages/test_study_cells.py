"""By what an evaluation is known: all that decides its outcome, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_records import plan as plan_of

from shiftcal.studies.archive import Archive, Entry
from shiftcal.studies.stages import cells
from shiftcal.studies.stages.cells import cells_of
from shiftcal.studies.variant import Ladder, Target, Variant

NAMES = ("clean", "pixelate-1", "pixelate-2", "pixelate-3", "fog-1", "fog-2", "natural")
ARCHIVE = Archive(
    Path("nowhere"), {name: Entry(f"{name}.npz", name) for name in NAMES}, Entry("t.npz", "train")
)
PLAN = plan_of(seeds=(3,))
FOG = Target("fog-1", "fog", 1)
SAC = Variant("sac", "SAC", "sac", Ladder("pixelate", (1, 2)), (FOG,), {"peek": 5})


def keys(variant, plan=PLAN, archive=ARCHIVE):
    return [cell.key for cell in cells_of(plan, [variant], archive)]


def with_entry(name, key):
    return replace(ARCHIVE, entries={**ARCHIVE.entries, name: Entry(f"{name}.npz", key)})


def method(name, **settings):
    return replace(SAC, method=name, key=name, settings=settings)


@pytest.mark.parametrize(
    "changed",
    [
        replace(SAC, method="sts", settings={}),
        replace(SAC, settings={"peek": 6}),
        replace(SAC, settings={"peek": 5, "distance": "ks"}),
        replace(SAC, ladder=Ladder("pixelate", (1,))),
        replace(SAC, ladder=Ladder("pixelate", (1, 3))),
        replace(SAC, ladder=Ladder("pixelate", (1, 2), images=50)),
        replace(SAC, targets=(Target("fog-2", "fog", 2),)),
        replace(SAC, targets=(Target("natural", "natural", None),)),
    ],
)
def test_another_variant_has_another_key(changed):
    assert keys(changed) != keys(SAC)


@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, bins=14),
        replace(PLAN, seeds=(4,)),
        replace(PLAN, calibration=replace(PLAN.calibration, images=4999)),
    ],
)
def test_another_plan_has_another_key(plan):
    assert keys(SAC, plan) != keys(SAC)


@pytest.mark.parametrize("name", ["clean", "pixelate-1", "fog-1"])
def test_other_scores_have_another_key(name):
    assert keys(SAC, archive=with_entry(name, "other")) != keys(SAC)


@pytest.mark.parametrize("name", ["clean", "pixelate-1", "fog-1"])
def test_another_file_of_the_same_scores_has_another_key(name):
    entry = replace(ARCHIVE.entries[name], sha256="other")
    other = replace(ARCHIVE, entries={**ARCHIVE.entries, name: entry})
    assert keys(SAC, archive=other) != keys(SAC)


def test_another_file_of_training_images_has_another_key_where_they_count():
    other = replace(ARCHIVE, train=replace(ARCHIVE.train, sha256="other"))
    assert keys(method("cpcs"), archive=other) != keys(method("cpcs"))
    assert keys(SAC, archive=other) == keys(SAC)


@pytest.mark.parametrize(
    "changed",
    [
        replace(SAC, label="another"),
        replace(SAC, key="another"),
        replace(SAC, panel="a panel", setting="a setting"),
        replace(SAC, targets=(Target("fog-1", "mist", 4),)),
    ],
)
def test_what_only_says_how_it_is_shown_does_not_count(changed):
    assert keys(changed) == keys(SAC)


def test_the_rest_of_a_plan_does_not_count():
    other = replace(PLAN, about="x", methods=(), options={"a": 1}, study="natural")
    assert keys(SAC, other) == keys(SAC)
    assert keys(SAC, archive=with_entry("fog-2", "other")) == keys(SAC)
    assert keys(SAC, archive=replace(ARCHIVE, train=Entry("t.npz", "other"))) == keys(SAC)


@pytest.mark.parametrize("name", ["vanilla", "ts", "oracle", "cpcs", "transcal"])
def test_what_learns_from_the_clean_set_does_not_depend_on_the_others(name):
    variant = method(name)
    assert keys(variant, archive=with_entry("pixelate-1", "other")) == keys(variant)
    assert keys(replace(variant, ladder=Ladder("pixelate", ()))) == keys(variant)
    assert keys(variant, archive=with_entry("clean", "other")) != keys(variant)


@pytest.mark.parametrize(
    ("name", "depends"), [("cpcs", True), ("transcal", True), ("sts", False), ("oracle", False)]
)
def test_training_images_count_for_those_who_look_at_features(name, depends):
    variant = method(name)
    other = replace(ARCHIVE, train=Entry("t.npz", "other"))
    assert (keys(variant, archive=other) != keys(variant)) == depends


def test_each_draw_has_a_key_of_its_own():
    several = keys(replace(SAC, draws=3))
    assert len(set(several)) == 3


def test_draws_on_another_target_are_others_even_if_its_scores_are_the_same():
    drawn, twin = replace(SAC, draws=2), Target("fog-2", "fog", 2)
    archive = with_entry("fog-2", "fog-1")
    assert keys(replace(SAC, targets=(twin,)), archive=archive) == keys(SAC)
    assert not set(keys(replace(drawn, targets=(twin,)), archive=archive)) & set(keys(drawn))


def test_another_way_of_evaluating_has_another_key(monkeypatch):
    before = keys(SAC)
    monkeypatch.setattr(cells, "FORMAT", cells.FORMAT + 1)
    assert keys(SAC) != before


def test_a_draw_of_several_is_not_that_of_one_with_a_seed_of_its_own():
    alone = keys(replace(SAC, settings={"peek": 5, "seed": 7}))
    several = keys(replace(SAC, settings={"peek": 5, "seed": 7}, draws=2))
    assert not set(alone) & set(several)


def test_the_order_is_that_of_splits_variants_targets_and_draws():
    targets = (FOG, Target("fog-2", "fog", 2))
    variants = [replace(SAC, targets=targets, draws=2), method("ts")]
    found = [
        (cell.split, cell.variant.key, cell.target.name, cell.draw)
        for cell in cells_of(replace(PLAN, seeds=(3, 1)), variants, ARCHIVE)
    ]
    one = [("sac", "fog-1", 0), ("sac", "fog-1", 1), ("sac", "fog-2", 0), ("sac", "fog-2", 1)]
    assert found == [(seed, *rest) for seed in (3, 1) for rest in [*one, ("ts", "fog-1", 0)]]
