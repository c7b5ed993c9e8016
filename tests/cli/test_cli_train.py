"""``shiftcal train``."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from two_domains import CLASSES, drawn, write_domain

from shiftcal.adaptation import Adapted
from shiftcal.models.pytorch import torch_threads as cpu_threads

N = 60
IMAGES = "--source photos --target sketches --backbone net.onnx?features_from=x --frozen"
QUICK = "--set iterations=20 --set batch_size=8 --set bottleneck=6 --severity 1,5"


@pytest.fixture(autouse=True)
def one_thread():
    with cpu_threads(1):
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two domains in class folders, one of them without labels too, and a backbone."""
    folder = tmp_path_factory.mktemp("domains")
    write_domain(folder / "photos", *drawn(N, seed=1))
    images, labels = drawn(N, shift=0.7, seed=2)
    write_domain(folder / "sketches", images, labels)
    np.save(folder / "bare.npy", images)
    (folder / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """The same in a folder of the test's own, which is the current one."""
    for each in made.iterdir():
        (tmp_path / each.name).symlink_to(each)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_says_what_came_and_what_is_next(folder, shiftcal):
    done = shiftcal("train --method mcc", IMAGES, QUICK, "-o run")
    assert (done.status, done.err) == (0, "")
    made = Adapted.open("run")
    assert f"calibration {made.bank.clean.summary().accuracy:.4g}" in done.out
    assert f"target {made.accuracy:.4g}" in done.out
    assert made.bank.classes == CLASSES
    following = done.out.splitlines()[-1].partition("shiftcal ")[2]
    after = shiftcal(following, "--resamples 0")
    assert after.status == 0
    assert [line.split()[1] for line in after.out.splitlines() if "missing" in line] == [
        "pseudocal"  # which needs the model itself
    ]


def test_a_target_without_labels_has_no_accuracy(folder, shiftcal_json):
    images = IMAGES.replace("sketches", "bare.npy")
    document = shiftcal_json("train --method dan", images, QUICK, "-o run")
    assert document["accuracy"]["target"] is None
    assert document["method"] == "dan"


def test_the_document_says_what_was_done(folder, shiftcal_json):
    document = shiftcal_json("train", IMAGES, QUICK, "--set entropy=true --seed 3 -o run")
    assert document["method"] == "cdan"
    assert document["options"]["entropy"] is True
    assert document["settings"]["iterations"] == 20
    assert document["images"] == {"train": 48, "calibration": 12, "seen": 30, "held_out": 30}
    assert (document["seed"], document["steps"], document["resumed_at"]) == (3, 20, 0)


def test_a_run_that_was_finished_says_so(folder, shiftcal_json):
    words = f"train --method dan {IMAGES} {QUICK} -o run"
    first, second = shiftcal_json(words), shiftcal_json(words)
    assert (first["finished_before"], second["finished_before"]) == (False, True)
    assert first["steps"] == second["steps"] == 20


def test_the_numbers_of_every_recipe_are_listed(shiftcal_json):
    listed = {each["name"]: each for each in shiftcal_json("list trainers")["trainers"]}
    for each in listed.values():
        assert set(each["recipes"]) == set(each["numbers"]) >= {"frozen", "office-home", "visda"}
    cdan = listed["cdan"]["numbers"]
    assert (cdan["frozen"]["options"]["hidden"], cdan["visda"]["options"]["hidden"]) == (64, 1024)
    assert cdan["office-home"]["settings"]["iterations"] == 30000
