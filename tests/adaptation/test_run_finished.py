"""Runs that are finished, and folders of features that spoil or spare work."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from two_domains import Counting, colour_model, domains

from shiftcal.adaptation import Adapted, adapt
from shiftcal.adaptation.devices import cpu_threads
from shiftcal.errors import FileError, InputError

N = 45
QUICK = {"iterations": 8, "batch_size": 6, "bottleneck": 5}


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


def run(folder, function, **options):
    wanted = {"trainer": "dan", "severities": (1, 5), "changes": QUICK, "frozen": True}
    backbone = options.pop("backbone", None) or colour_model(function)
    source, target = domains(N)
    return adapt(source, target, folder, backbone=backbone, **{**wanted, **options})


@pytest.mark.parametrize("batch_size", [16, None])
def test_features_that_are_gone_are_not_made_for_a_finished_run(tmp_path, batch_size):
    counting = Counting()

    def backbone():
        return colour_model(counting, batch_size=batch_size)

    made = run(tmp_path / "run", counting, backbone=backbone())
    assert not made.finished_before
    shutil.rmtree(made.folder / "features")
    seen = counting.seen
    again = run(tmp_path / "run", counting, backbone=backbone())
    assert again.finished_before
    assert counting.seen == seen
    assert not (made.folder / "features").exists()
    assert again.document == made.document
    assert not Adapted.open(made.folder).finished_before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"backbone": colour_model(key="other")}, "training.inputs.source.fingerprint was"),
        ({"backbone": colour_model(batch_size=8)}, "batch_size was 16 and is 8"),
        ({"seed": 1}, "training.seed was 0 and is 1"),
    ],
)
def test_another_run_is_noticed_without_features(tmp_path, options, told):
    counting = Counting()
    made = run(tmp_path / "run", counting)
    shutil.rmtree(made.folder / "features")
    seen = counting.seen
    with pytest.raises(FileError, match="holds another run") as raised:
        run(tmp_path / "run", counting, **options)
    assert told in str(raised.value)
    assert counting.seen == seen


def test_other_images_are_noticed_without_features(tmp_path):
    made = run(tmp_path / "run", Counting())
    shutil.rmtree(made.folder / "features")
    source, target = domains(N)
    options = {"trainer": "dan", "severities": (1, 5), "changes": QUICK, "frozen": True}
    turned = target.subset(np.arange(N)[::-1])
    with pytest.raises(FileError, match=r"training\.inputs\.target\.images was"):
        adapt(source, turned, made.folder, backbone=colour_model(), **options)


def test_of_a_run_by_itself_only_calibration_images_are_corrupted(tmp_path):
    counting = Counting()
    made = run(tmp_path / "run", counting)
    cut = len(made.split.calibration)
    assert counting.seen == 2 * N + 3 * cut  # clean, and two severities
    shared = Counting()
    other = run(tmp_path / "other", shared, features=tmp_path / "shared")
    assert shared.seen == 4 * N
    for mine, theirs in zip(made.bank, other.bank, strict=True):
        assert mine.name == theirs.name
        np.testing.assert_array_equal(mine.labels, theirs.labels)
        # Features go by the rows of a batch in the last digits, if at all.
        np.testing.assert_allclose(mine.logits, theirs.logits, rtol=1e-5, atol=1e-6)


def test_processes_can_compute_features(tmp_path, monkeypatch):
    from shiftcal.adaptation import frozen_inputs

    asked = []

    def engine(*, workers):
        asked.append(workers)

    monkeypatch.setattr(frozen_inputs, "LocalEngine", engine)
    run(tmp_path / "run", Counting(), workers=2)
    assert asked == [2, 2, 2]
    run(tmp_path / "other", Counting())
    assert asked == [2, 2, 2]


@pytest.mark.parametrize("place", ["run", "run/more", "run/training", "run/bank/features"])
def test_features_in_the_folder_of_the_run_are_refused(tmp_path, place):
    with pytest.raises(InputError, match="must have a folder outside of that of the run"):
        run(tmp_path / "run", Counting(), features=tmp_path / place)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("place", ["run/features", "features"])
def test_features_may_be_where_they_would_be_or_outside(tmp_path, place):
    counting = Counting()
    run(tmp_path / "run", counting, features=tmp_path / place)
    seen = counting.seen
    assert run(tmp_path / "run", counting, features=tmp_path / place).finished_before
    assert counting.seen == seen


def test_the_same_images_as_source_and_target_are_warned_of(tmp_path):
    source = domains(N)[0]
    options = {"trainer": "dan", "severities": (5,), "changes": QUICK, "frozen": True}
    with pytest.warns(match="source and target are the same images"):
        adapt(source, source, tmp_path / "run", backbone=colour_model(), **options)
