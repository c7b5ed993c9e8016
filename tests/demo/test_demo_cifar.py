from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from cifar_copies import drawn, write_python_batches
from PIL import Image
from small_demo import Told

from shiftcal.demo import cifar as cifar_module
from shiftcal.demo import cifar_subject, run_demo
from shiftcal.errors import FileError, MissingData
from shiftcal.scoring.run import Reporting

WEIGHTS = "resnet20-12fca82f.th"


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(cifar_module, "CALIBRATED_ON", 20)


@pytest.fixture
def weights(shared_data):
    return shared_data / "cifar10-resnet-weights" / WEIGHTS


def pair(n, seed):
    return drawn(n, seed), (np.arange(n) % 10).tolist()


def mosaic(folder, name, n, seed):
    folder.mkdir(parents=True, exist_ok=True)
    rows = drawn(n, seed).reshape(-1, 10, 32, 32, 3).transpose(0, 2, 1, 3, 4)
    picture = rows.reshape(-1, 320, 3)
    Image.fromarray(picture).save(folder / f"{name}.webp", lossless=True)


@pytest.mark.parametrize(("place", "beside"), [("cifar10", "cifar10-resnet-weights"), (".", ".")])
def test_batches_and_weights_are_found_where_they_are_usual(tmp_path, few, weights, place, beside):
    train = [pair(10, 50 + i) for i in range(5)]
    write_python_batches(tmp_path / place / "cifar-10-batches-py", pair(60, 1), train)
    (tmp_path / beside).mkdir(exist_ok=True)
    shutil.copy(weights, tmp_path / beside / WEIGHTS)
    subject = cifar_subject(tmp_path)
    assert (len(subject.calibration), len(subject.new)) == (20, 20)
    assert len(subject.train) == 20
    used = {int(name) for name in subject.calibration.ids(range(20))}
    new = {next(i for i in range(60) if (drawn(60, 1)[i] == one).all()) for one in subject.new}
    assert len(used | new) == 40
    assert subject.model.spec is not None  # so that `shiftcal score --bank` can make it again
    assert WEIGHTS in subject.model.spec
    assert subject.model.classes[3] == "cat"  # the page names classes, not numbers


def test_mosaics_are_found_too_and_training_images_can_be_missing(tmp_path, few, weights):
    mosaic(tmp_path / "cifar10", "test", 60, 2)
    np.savez(tmp_path / "cifar10" / "labels.npz", test=np.arange(60) % 10)
    shutil.copy(weights, tmp_path / WEIGHTS)
    subject = cifar_subject(tmp_path)
    assert subject.train is None
    assert subject.calibration.classes[3] == "cat"
    assert {one.corruption for one in subject.targets}.isdisjoint(subject.corruptions)


def test_a_training_set_with_holes_is_left_aside(tmp_path, few, weights):
    folder = tmp_path / "cifar-10-batches-py"
    write_python_batches(folder, pair(60, 1), [pair(10, 3)])
    shutil.copy(weights, tmp_path / WEIGHTS)
    assert cifar_subject(tmp_path).train is None


def test_what_is_missing_is_said_with_what_to_get(tmp_path):
    with pytest.raises(
        MissingData, match=r"--data must name a folder; .*nowhere is none"
    ) as caught:
        cifar_subject(tmp_path / "nowhere")
    assert "shiftcal data get cifar10 --to" in str(caught.value)
    with pytest.raises(MissingData, match="lacks images and weights") as caught:
        cifar_subject(tmp_path)
    assert "shiftcal data get cifar10 --to" in str(caught.value)
    assert WEIGHTS in str(caught.value)
    write_python_batches(tmp_path / "cifar-10-batches-py", pair(60, 1))
    with pytest.raises(MissingData, match="lacks weights") as caught:
        cifar_subject(tmp_path)
    assert "shiftcal data get" not in str(caught.value)


def test_damaged_files_are_refused_by_name(tmp_path, few):
    write_python_batches(tmp_path / "cifar-10-batches-py", pair(60, 1))
    (tmp_path / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(FileError, match=WEIGHTS):
        cifar_subject(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(b"no batch")
    with pytest.raises(FileError, match="test_batch"):
        cifar_subject(tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
def test_real_images_and_the_real_network(tmp_path, shared_data, monkeypatch):
    monkeypatch.setattr(cifar_module, "CALIBRATED_ON", 120)
    whole = cifar_subject(shared_data)
    # Fewer sets, and corruptions that are soon compiled.
    subject = replace(whole, corruptions=("brightness", "gaussian_noise"), n_resamples=50)
    found = run_demo(
        lambda: subject,
        "cifar10",
        tmp_path / "demo",
        telling=Told(),
        reporting=Reporting(shown=False),
        command="shiftcal demo",
    )
    # Published: 91.7 %; 120 images have a standard error of 2.5 points.
    assert found.clean_accuracy > 0.84
    frost = found.met[0].facts
    assert frost.target.mean_confidence > frost.target.accuracy.value + 0.1
    assert frost.of("rehearsal").ece.value < frost.of("vanilla").ece.value
    assert {"cpcs", "transcal"}.isdisjoint(frost.missing)
    assert {one.name for one in frost.classes} == set(whole.calibration.classes)
