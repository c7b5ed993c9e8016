"""The built-in plans of the synthetic and the natural study."""

from __future__ import annotations

import pytest

from shiftcal.report.gallery import PAPER
from shiftcal.studies.catalog.natural import Natural
from shiftcal.studies.catalog.synthetic import Synthetic
from shiftcal.studies.plan.reading import plan_text, read_plan

STUDIES = {
    "synthetic": Synthetic,
    "synthetic-imagenet": Synthetic,
    "natural": Natural,
    "natural-imagenet16": Natural,
    "natural-cifar10": Natural,
}


def read(name, data="/data"):
    return read_plan(plan_text(name)[0], data=data)


@pytest.mark.parametrize("name", STUDIES)
def test_a_built_in_plan_can_be_read_and_its_study_takes_it(name):
    plan = read(name)
    study = STUDIES[name]()
    study.check(plan)
    assert plan.study == name.split("-")[0]
    assert plan.about
    assert "{data}" not in plan.data.fetch
    assert "/data/" in plan.data.fetch
    assert all(each.fetch for each in plan.shifts.sets)
    assert study.variants(plan)[0].targets[0].name == "clean"


@pytest.mark.parametrize("name", ["synthetic", "synthetic-imagenet"])
def test_the_synthetic_plans_test_the_papers_twelve_corruptions(name):
    plan = read(name)
    targets = Synthetic().variants(plan)[0].targets
    tested = {target.corruption for target in targets} - {"none"}
    assert tested == set(PAPER) - {"brightness", "contrast", "saturate", "pixelate"}
    assert len(targets) == 1 + 12 * 5


def test_the_paper_splits_and_ladder_are_the_default():
    plan = read("synthetic")
    assert plan.seeds == (0, 1, 2, 3, 4)
    assert plan.bins == 15
    assert (plan.calibration.images, plan.calibration.corruption) == (5000, "pixelate")
    assert plan.calibration.severities == (1, 2, 3, 4, 5)


def test_the_natural_plan_has_every_column_of_the_papers_table():
    columns = [each.column for each in read("natural").shifts.sets]
    assert columns == ["imagenet-v2-mf", "imagenet-v2-thr", "imagenet-v2-ti", "imagenet-sketch"]


def test_the_data_of_the_cifar_plans_can_be_opened(shared_data):
    from shiftcal.studies.stages.sources import open_sources

    sources = open_sources(read("natural-cifar10", shared_data), skip_missing=True)
    assert (len(sources.images), len(sources.train)) == (10_000, 10_000)
    assert len(sources.sets["tiny-imagenet-strict"]) == 4_000
    assert len(sources.sets["tiny-imagenet"]) == 5_200
    seen = sources.model.outputs(sources.images.read([0, 1, 2]).images)
    assert seen.features.shape == (3, 64)
