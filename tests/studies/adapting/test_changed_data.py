"""A study whose images or labels changed since its networks were trained."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from toy_adaptation import toy_plan, write_domains

from shiftcal import studies
from shiftcal.adaptation import Adapted
from shiftcal.errors import FileError
from shiftcal.studies.adapting.content import Content
from shiftcal.studies.adapting.sources import open_domains
from shiftcal.studies.adapting.training import is_left
from shiftcal.studies.adapting.trainings import trainings_of
from shiftcal.studies.stages import reporting

pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:30 images of .* are tested on")

FEW = {"iterations": 3, "batch_size": 6, "bottleneck": 4}


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    monkeypatch.setattr(reporting, "write_figure", lambda *_: None)


def small(data, **changes):
    """Two networks, without adaptation: from dawn to noon, and from noon to dusk."""
    plan = replace(toy_plan(data), seeds=(0,), **changes)
    few = replace(plan.training, settings=FEW)
    return replace(plan, trainers=plan.trainers[:1], methods=plan.methods[:2], training=few)


def changed(file, **how):
    """The arrays of a file, each changed by a function; what was there, to be put back."""
    with np.load(file) as held:
        before = dict(held)
    content = file.read_bytes()
    np.savez(file, **{name: how.get(name, np.copy)(values) for name, values in before.items()})
    return content


def one_pixel(images):
    other = images.copy()
    other[3, 2, 2, 0] ^= 1
    return other


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Images of its own, and a run on their features."""
    folder = tmp_path_factory.mktemp("changed")
    data = write_domains(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reporting, "write_figure", lambda *_: None)
        studies.reproduce(small(data), folder / "run")
    return data, folder / "run"


def test_labels_of_a_source_that_changed_are_named(made):
    data, run = made
    content = changed(data / "dawn.npz", labels=lambda labels: (labels + 1) % 3)
    try:
        with pytest.raises(FileError, match=r"made of other data than there is now") as caught:
            studies.reproduce(small(data), run)
        told = str(caught.value)
        assert "changed are the labels of dawn. Put back what was there, or name a new" in told
        assert "shiftcal reproduce" in told
    finally:
        (data / "dawn.npz").write_bytes(content)
    done = studies.reproduce(small(data), run)
    assert (done.trained, done.evaluated) == (0, 0)


def test_networks_are_judged_by_the_labels_that_a_target_has_now(made, tmp_path):
    data, finished = made
    run = shutil.copytree(finished, tmp_path / "run")
    before = {r.target: r for r in studies.Run(run).records if r.method == "vanilla"}
    content = changed(data / "dusk.npz", labels=lambda labels: (labels + 1) % 3)
    try:
        done = studies.reproduce(small(data), run)
    finally:
        (data / "dusk.npz").write_bytes(content)
    assert (done.trained, done.evaluated) == (0, 2)
    after = {r.target: r for r in studies.Run(run).records if r.method == "vanilla"}
    assert after["dawn_to_noon"] == before["dawn_to_noon"]
    assert after["noon_to_dusk"].accuracy != before["noon_to_dusk"].accuracy
    adapted = Adapted.open((run / after["noon_to_dusk"].arrays).parent)
    with np.load(data / "dusk.npz") as held:
        expected = (held["labels"][adapted.split.held_out] + 1) % 3
    assert adapted.target.labels.tolist() == expected.tolist()
    right = (adapted.target.values.argmax(axis=1) == expected).mean()
    assert after["noon_to_dusk"].accuracy == right == adapted.accuracy


def test_other_features_under_the_same_name_are_noticed(made, tmp_path):
    data, finished = made
    run = shutil.copytree(finished, tmp_path / "run")
    content = changed(data / "dusk.npz", images=one_pixel)
    try:
        with pytest.raises(FileError, match="holds a bank with images"):
            studies.reproduce(small(data), run)
        shutil.rmtree(run / "features")
        with pytest.raises(FileError, match=r"changed are the images of dusk\. Put back"):
            studies.reproduce(small(data), run)
    finally:
        (data / "dusk.npz").write_bytes(content)


def test_images_of_whole_networks_that_changed_are_named(tmp_path):
    data = write_domains(tmp_path / "data")
    plan = small(data)
    network = replace(plan.network, backbone=("torch:tiny_backbone:tiny",), frozen=False)
    plan = replace(plan, network=network, tasks=plan.tasks[:1], domains=plan.domains[:2])
    plan = replace(plan, calibration=replace(plan.calibration, severities=(1,)))
    assert studies.reproduce(plan, tmp_path / "run").trained == 1
    assert studies.reproduce(plan, tmp_path / "run").trained == 0
    changed(data / "noon-1.npz", images=one_pixel)
    with pytest.raises(FileError, match=r"changed are the images of noon\. Put back"):
        studies.reproduce(plan, tmp_path / "run")


def test_a_network_that_does_not_say_what_it_is_of_is_refused(made, tmp_path):
    data, finished = made
    run = shutil.copytree(finished, tmp_path / "run")
    (file,) = run.glob("trainings/dawn_to_noon/*/seed-0/adapt.json")
    told = json.loads(file.read_text("utf-8"))
    del told["identity"]["training"]["inputs"]
    file.write_text(json.dumps(told), "utf-8")
    with pytest.raises(FileError, match=r"does not say what it was trained on: 'inputs'\. Remove"):
        studies.reproduce(small(data), run)


def test_a_training_that_diverged_on_other_labels_is_tried_again(tmp_path):
    data, run = write_domains(tmp_path / "data"), tmp_path / "run"
    plan = small(data, network=replace(toy_plan(data).network, frozen=False))
    plan = replace(plan, network=replace(plan.network, backbone=("torch:tiny_backbone:tiny",)))
    domains = open_domains(plan)
    first, second = trainings_of(domains.plan)
    content = Content(domains, {})
    first.fail(run, "it diverged.", content.of(first))
    assert [is_left(each, run, content) for each in (first, second)] == [False, True]
    assert not is_left(first, run)  # nobody knows better
    changed(data / "dawn.npz", labels=lambda labels: labels[::-1])
    now = Content(open_domains(plan), {})
    assert is_left(first, run, now)
    first.fail(run, "it diverged again.", now.of(first))
    failure = first.failure(run)
    assert (is_left(first, run, now), failure.reason) == (False, "it diverged again.")
