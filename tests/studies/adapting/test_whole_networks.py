"""Whole networks: the plans of Office-Home, VisDA-2017 and digits, on small trees of images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stored_images import write_images
from two_domains import drawn

from shiftcal import studies
from shiftcal.adaptation import Adapted
from shiftcal.studies.stages import reporting

pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.* images of .* are tested on")

TINY = "torch:tiny_backbone:tiny"
FEW = {"iterations": 3, "batch_size": 6, "bottleneck": 4}


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    monkeypatch.setattr(reporting, "write_figure", lambda *_: None)


def write_tree(folder, classes, *, shift, seed, n=30):
    """Image files in the folders of three classes."""
    images, labels = drawn(n, shift=shift, seed=seed)
    names = [f"{classes[label]}/{i:03d}.png" for i, label in enumerate(labels)]
    write_images(folder, images, names)


def reduced(name, data, **changes):
    """The plan of that name for the tiny network, with a few steps and bins."""
    plan = studies.read_plan(studies.plan_text(name)[0], data=data)
    return replace(
        plan,
        bins=3,
        network=replace(plan.network, backbone=(TINY,)),
        training=replace(plan.training, device="cpu", settings=FEW),
        calibration=replace(plan.calibration, severities=(1, 4)),
        **changes,
    )


def test_office_home_goes_from_image_files_to_the_papers_table_3(tmp_path):
    for seed, domain in enumerate(("Art", "Clipart", "Product", "Real World")):
        folder = tmp_path / "data" / "office-home" / domain
        write_tree(folder, ("Alarm_Clock", "Bike", "TV"), shift=0.2 * seed, seed=seed)
    plan = reduced("office-home", tmp_path / "data")
    plan = replace(plan, tasks=(("art", "clipart"), ("real-world", "art")))
    found = studies.forecast(plan, tmp_path / "run")
    assert (found.images, found.trainings) == (0, 4)
    assert found.training_seconds > 0
    assert str(found).startswith("4 trainings (")
    done = studies.reproduce(plan, tmp_path / "run")
    assert (done.scored, done.trained, done.records) == (0, 4, 4 * len(plan.methods))
    table = done.findings.tables["ece-cdan"]
    assert [column.name for column in table.columns] == ["A2C", "R2A", "Avg"]
    paper = next(row for row in table.rows if row.label == "STS (paper)")
    assert [cell.value for cell in paper.cells] == [25.23, 6.03, None]
    place = next((tmp_path / "run").glob("trainings/art_to_clipart/cdan-*/seed-0"))
    adapted = Adapted.open(place)
    assert adapted.document["recipe"] == "office-home"
    assert not adapted.document["frozen"]
    assert adapted.document["n_classes"] == 65
    run = studies.Run(tmp_path / "run")
    assert [run.recompute(record) for record in run.records[:9]] == run.records[:9]
    again = studies.reproduce(plan, tmp_path / "run")
    assert (again.trained, again.evaluated) == (0, 0)


def test_visda_goes_from_image_files_to_the_papers_table_4(tmp_path):
    for seed, part in enumerate(("train", "validation")):
        folder = tmp_path / "data" / "visda2017" / part
        write_tree(folder, ("aeroplane", "bus", "plant"), shift=0.3 * seed, seed=seed)
    plan = reduced("visda", tmp_path / "data")
    plan = replace(plan, trainers=tuple(t for t in plan.trainers if t.name in ("dan", "mdd")))
    done = studies.reproduce(plan, tmp_path / "run")
    assert (done.trained, done.records) == (2, 2 * len(plan.methods))
    table = done.findings.tables["ece-by-trainer"]
    paper = [c.key for c in table.columns if c.group == "paper, VisDA-2017"]
    assert len(paper) == 6
    assert next(row for row in table.rows if row.label == "SAC").cells[3].value == 7.83
    assert any("ours and the paper's mean ECE" in each for each in done.findings.remarks)
    (place,) = (tmp_path / "run").glob("trainings/synthetic_to_real/mdd-*/seed-0")
    assert Adapted.open(place).document["identity"]["training"]["inputs"]["transform"] == (
        "center-crop"
    )


@pytest.mark.slow
def test_digits_of_the_real_files_are_read_and_trained_on(shared_data, tmp_path):
    plan = studies.read_plan(studies.plan_text("digits")[0], data=shared_data)
    plan = replace(
        plan,
        seeds=(0,),
        trainers=plan.trainers[:1],
        domains=tuple(replace(domain, limit=300) for domain in plan.domains),
        training=replace(plan.training, settings={"iterations": 60}),
        calibration=replace(plan.calibration, severities=(2,)),
    )
    done = studies.reproduce(plan, tmp_path / "run")
    accuracy = {r.target: r.accuracy for r in studies.Run(done.folder).records}
    # Of 240 images and 60 steps nobody learns much, but more than the tenth of a guess.
    assert accuracy["mnist_to_usps"] > 0.25
    assert np.isfinite(accuracy["mnist_to_mnist-m"])
    told = studies.Run(done.folder).plan.domains
    assert [len(domain.images[0]) for domain in told] == [1, 2, 1]


@pytest.mark.slow
def test_frozen_features_of_real_images_tell_classes_apart(shared_data, tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch")
    plan = studies.read_plan(studies.plan_text("office-caltech")[0], data=shared_data)
    plan = replace(
        plan,
        seeds=(0,),
        tasks=(("webcam", "dslr"),),
        trainers=plan.trainers[:1],
        domains=tuple(replace(domain, limit=60) for domain in plan.domains),
        calibration=replace(plan.calibration, severities=(3,)),
    )
    done = studies.reproduce(plan, tmp_path / "run")
    assert done.scored == 60 * 2 + 60
    accuracy = studies.Run(done.folder).records[0].accuracy
    # Webcam and DSLR are nearly the same things: 98 % with all images.
    assert accuracy > 0.85
