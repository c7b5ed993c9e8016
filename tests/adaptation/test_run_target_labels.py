"""Labels of the target that come, change or go after a run is finished."""

from __future__ import annotations

import json

import numpy as np
import pytest
from one_layer import one_layer
from two_domains import CLASSES, arrays_of, colour_model, domains, drawn, write_domain

from shiftcal.adaptation import Adapted, adapt
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.adaptation.task import Task
from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputWarning

N = 45
QUICK = {"iterations": 8, "batch_size": 6, "bottleneck": 5}
BACKBONES = {
    "frozen": lambda: {"backbone": colour_model(), "frozen": True},
    "network": lambda: {"backbone": one_layer()},
}


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


def run(folder, mode, labels):
    source, target = domains(N)
    target = target.relabelled(labels, classes=CLASSES)
    options = {"trainer": "dan", "severities": (5,), "changes": QUICK, **BACKBONES[mode]()}
    return adapt(source, target, folder, **options)


@pytest.mark.parametrize("mode", BACKBONES)
def test_labels_that_came_later_judge_a_finished_run(tmp_path, mode):
    labels = domains(N)[1].labels
    bare = run(tmp_path / "run", mode, None)
    before = arrays_of(bare.folder)
    assert bare.accuracy is None
    again = run(tmp_path / "run", mode, labels)
    assert again.finished_before
    held_out = labels[again.split.held_out]
    np.testing.assert_array_equal(again.target.labels, held_out)
    right = again.target.values.argmax(axis=1) == held_out
    assert again.accuracy == pytest.approx(right.mean())
    after = arrays_of(again.folder)
    del after["target.npz/labels"]
    assert after == before
    gone = run(tmp_path / "run", mode, None)
    assert gone.accuracy is None
    assert arrays_of(gone.folder) == before


def test_other_labels_judge_otherwise_and_the_rest_of_the_document_stays(tmp_path):
    labels = domains(N)[1].labels
    first = run(tmp_path / "run", "frozen", labels)
    second = run(tmp_path / "run", "frozen", np.roll(labels, 1))
    assert second.accuracy != first.accuracy
    apart = ("accuracy", "target_labels")
    assert second.document["accuracy"]["calibration"] == first.document["accuracy"]["calibration"]
    for name in first.document.keys() - set(apart):
        assert second.document[name] == first.document[name], name


def test_a_run_that_says_nothing_of_its_labels_is_looked_at(tmp_path):
    labels = domains(N)[1].labels
    made = run(tmp_path / "run", "frozen", labels)
    file = made.folder / "adapt.json"
    told = json.loads(file.read_text())
    del told["target_labels"]
    file.write_text(json.dumps(told))
    before = {each: each.stat().st_mtime_ns for each in made.folder.iterdir()}
    run(tmp_path / "run", "frozen", labels)
    assert {each: each.stat().st_mtime_ns for each in made.folder.iterdir()} == before
    assert run(tmp_path / "run", "frozen", np.roll(labels, 1)).accuracy != made.accuracy


def test_killed_between_the_two_files_it_is_done_again(tmp_path, monkeypatch):
    from shiftcal.adaptation import _target_labels

    labels = domains(N)[1].labels
    run(tmp_path / "run", "frozen", None)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_target_labels, "write_about", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", "frozen", labels)
    assert Adapted.open(tmp_path / "run").accuracy is None
    assert run(tmp_path / "run", "frozen", labels).accuracy is not None


def test_labels_that_came_later_pass_over_an_image_that_could_not_be_read(tmp_path):
    source, _ = domains(N)
    images, labels = drawn(N, shift=0.7, seed=2)
    write_domain(tmp_path / "target", images, labels)
    target = as_image_set(tmp_path / "target")
    options = {"trainer": "dan", "severities": (5,), "changes": QUICK, **BACKBONES["network"]()}
    bad = Task(source, target).split().held_out[3]
    (tmp_path / "target" / target.ids([bad])[0]).write_bytes(b"no image")
    with pytest.warns(InputWarning, match="left out 1 of"):
        bare = adapt(source, target.relabelled(None, classes=CLASSES), tmp_path / "run", **options)
    again = adapt(source, target, tmp_path / "run", **options)
    held_out = np.setdiff1d(bare.split.held_out, [bad])
    np.testing.assert_array_equal(again.target.labels, target.labels[held_out])
    right = again.target.values.argmax(axis=1) == target.labels[held_out]
    assert again.accuracy == pytest.approx(right.mean())


def test_damaged_scores_of_the_target_are_told(tmp_path):
    made = run(tmp_path / "run", "frozen", None)
    (made.folder / "target.npz").write_bytes(b"PK nothing")
    with pytest.raises(FileError, match=r"target\.npz could not be read: .* run again"):
        run(tmp_path / "run", "frozen", domains(N)[1].labels)
