from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from absent_package import hide
from small_demo import Told, demonstrate, small_subject, whole_subject

import shiftcal as sc
from shiftcal.demo import bank as bank_module
from shiftcal.demo.bank import bank_in
from shiftcal.demo.digits import Network, model_of
from shiftcal.demo.run import STEPS
from shiftcal.errors import FileError
from shiftcal.scoring.run import Reporting

pytestmark = pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder with a small demonstration, what it found and what it told; read-only."""
    folder = tmp_path_factory.mktemp("done") / "demo"
    told = Told()
    return folder, demonstrate(folder, telling=told), told


@pytest.fixture
def copied(done, tmp_path):
    """The folder again, for a test of its own."""
    shutil.copytree(done[0], tmp_path / "demo")
    return tmp_path / "demo"


def test_every_step_is_told(done):
    _, found, told = done
    assert len(told.steps) == STEPS
    assert "brightness" in found.corruptions
    assert "bank of 11 sets" in told.steps[1]


def test_the_files_are_of_the_kinds_that_commands_take(done):
    folder, found, _ = done
    bank = sc.SurrogateBank.load(folder / "bank")
    assert len(bank) == found.n_sets == 11
    assert bank.clean.features is not None
    for met in found.met:
        scores = sc.read_scores(met.scores)
        assert (scores.n, scores.k) == (200, 10)
        assert scores.features is not None
        assert np.load(folder / f"{met.target.name}-images.npy").shape[0] == 200
    assert sc.read_scores(folder / "train.npz").features.shape == (240, 64)
    assert isinstance(sc.load(folder / "rehearsal.json"), sc.Rehearsal)
    assert "<!doctype html>" in (folder / "report.html").read_text().lower()


def test_the_numbers_are_those_of_the_files(done):
    folder, found, _ = done
    told = json.loads((folder / "demo.json").read_text())
    bank = sc.SurrogateBank.load(folder / "bank")
    right = bank.clean.logits.argmax(axis=1) == bank.clean.labels
    assert told["clean_accuracy"] == pytest.approx(right.mean(), abs=1e-12)
    names = ("vanilla", "sts", "sac", "rehearsal")
    fitted = {name: sc.methods.get(name)().fit(bank) for name in names}
    for one in told["targets"]:
        scores = sc.read_scores(one["scores"])
        by_name = {method["name"]: method for method in one["methods"]}
        for name, method in fitted.items():
            method.adapt(scores.values)
            probs = method.predict_proba(scores.values)
            ece = sc.ece(probs.max(axis=1), probs.argmax(axis=1) == scores.labels)
            # The scores are float32; the map is the same to the last bits.
            assert by_name[name]["ece"]["value"] == pytest.approx(ece, abs=1e-6), name
            assert by_name[name]["mean_confidence"] == pytest.approx(probs.max(axis=1).mean())
    assert [one["name"] for one in told["targets"]] == [met.target.name for met in found.met]


def test_run_again_it_finds_its_work_done(copied, monkeypatch):
    before = {file: file.stat().st_mtime_ns for file in copied.rglob("*.npz")}
    old = json.loads((copied / "demo.json").read_text())
    calls = []
    network = Network.__call__
    monkeypatch.setattr(
        Network, "__call__", lambda self, images: calls.append(1) or network(self, images)
    )
    demonstrate(copied)
    assert not calls
    assert {file: file.stat().st_mtime_ns for file in copied.rglob("*.npz")} == before
    new = json.loads((copied / "demo.json").read_text())
    for told in (old, new):
        del told["seconds"], told["next"], told["folder"], told["report"]
        for one in told["targets"]:
            del one["scores"]
    assert new == old


def test_it_goes_on_where_it_was_stopped(tmp_path):
    told = Told(KeyboardInterrupt(), at=4)
    with pytest.raises(KeyboardInterrupt):
        demonstrate(tmp_path / "demo", telling=told)
    banked = (tmp_path / "demo" / "bank" / "bank.json").stat().st_mtime_ns
    assert not (tmp_path / "demo" / "report.html").exists()
    demonstrate(tmp_path / "demo")
    assert (tmp_path / "demo" / "bank" / "bank.json").stat().st_mtime_ns == banked
    assert (tmp_path / "demo" / "report.html").exists()
    assert not list((tmp_path / "demo").rglob("*.tmp"))


def other_model():
    network = whole_subject().model.function
    other = object.__new__(Network)
    other.weights = [weights * 0.5 for weights in network.weights]
    other.biases = network.biases
    return model_of(other)


def test_the_bank_of_another_network_is_made_anew(copied):
    before = sc.SurrogateBank.load(copied / "bank").clean.logits
    found = demonstrate(copied, small_subject(model=other_model()))
    after = sc.SurrogateBank.load(copied / "bank").clean.logits
    assert not np.array_equal(before, after)
    facts = found.met[0].facts
    assert not [note for note in facts.warnings if note.code == "another-model"]


def test_a_disk_that_fails_is_no_other_network(copied, monkeypatch):
    def full(*_, **__):
        raise FileError("no room") from OSError(28, "No space left on device")

    monkeypatch.setattr(bank_module, "build_bank", full)
    with pytest.raises(FileError, match="no room"):
        bank_in(copied / "bank", small_subject(), Reporting(shown=False))
    assert len(sc.SurrogateBank.load(copied / "bank")) == 11


def test_without_extras_and_training_images_the_rest_is_there(copied, done, monkeypatch):
    hide(monkeypatch, "jinja2")
    hide(monkeypatch, "PIL")
    found = demonstrate(copied, replace(small_subject(), train=None))
    assert found.report is None
    assert "needs jinja2" in found.no_report
    assert "pip install 'shiftcal[report]'" in found.no_report
    assert not (copied / "report.html").exists()  # that of the run before
    assert json.loads((copied / "demo.json").read_text())["report"] is None
    assert found.next[3][1] == "card"
    assert found.met[0].facts.examples == ()
    assert done[1].met[0].facts.examples
    assert not (copied / "train.npz").exists()
    assert {"cpcs", "transcal"} <= set(found.met[0].facts.missing)
    assert "--source-train" not in found.next[1]


def test_a_folder_of_something_else_is_refused_before_anything_is_done(tmp_path):
    (tmp_path / "holiday.jpg").touch()
    told = Told()
    with pytest.raises(FileError, match=r"holds 'holiday\.jpg' and is no folder of a demo"):
        demonstrate(tmp_path, telling=told)
    assert told.steps == []
