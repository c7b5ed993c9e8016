"""Files of every released version load, and give what they gave."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import shiftcal as sc
from shiftcal.cli.monitor import Progress, StateFile

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("write", HERE / "write.py")
write = importlib.util.module_from_spec(spec)
spec.loader.exec_module(write)

VERSIONS = sorted(folder for folder in HERE.iterdir() if (folder / "expected.npz").exists())
SAVED = [
    pytest.param(file, id=f"{folder.name}/{file.stem}")
    for folder in VERSIONS
    for file in sorted(folder.glob("*.json"))
    if write.is_estimator(file)
]


@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
@pytest.mark.parametrize("file", SAVED)
def test_a_saved_method_map_estimator_or_monitor_gives_what_it_gave(file, monkeypatch):
    monkeypatch.setattr(write, "FOLDER", file.parent)
    with np.load(file.parent / "expected.npz") as expected:
        np.testing.assert_allclose(write.given_by(sc.load(file)), expected[file.stem], atol=1e-9)


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_the_state_of_the_command_resumes_with_what_waits(folder, tmp_path):
    state = StateFile(Path(shutil.copy(folder / "monitor.state", tmp_path)))
    found, progress = state.read()
    state.close()
    assert Progress(**progress).items == 1
    monitor = sc.load(folder / "monitor.json")
    monitor.load_state_dict(found)
    monitor.add_labels([f"row-{i}" for i in range(80)], write.LABELS)
    assert (monitor.rows, monitor.realised.labelled, monitor.realised.waiting) == (80, 80, 0)
    with np.load(folder / "expected.npz") as expected:
        confidence = monitor.feed(write.TARGET).confidence
        np.testing.assert_allclose(confidence, expected["monitor"], atol=1e-9)


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_statistics_banks_and_scores_are_what_they_were(folder):
    statistics = sc.ScoreStatistics.read(folder / "statistics.json")
    with np.load(folder / "expected.npz") as expected:
        np.testing.assert_allclose(write.numbers_of(statistics), expected["statistics"], atol=1e-9)
    bank, wanted = sc.SurrogateBank.load(folder / "bank"), write.bank()
    assert bank.classes == wanted.classes
    for one, other in zip(bank, wanted, strict=True):
        assert (one.name, one.corruption, one.severity) == (
            other.name,
            other.corruption,
            other.severity,
        )
        np.testing.assert_array_equal(one.logits, other.logits)
        np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(bank.clean.features, wanted.clean.features)
    for file in folder.glob("scores.*"):
        scores = sc.read_scores(file)
        np.testing.assert_array_equal(scores.values, write.TARGET)
        np.testing.assert_array_equal(scores.labels, write.LABELS[:60])
        assert (scores.classes, scores.ids[59]) == (("cat", "dog", "fox"), "image-59")


def test_this_version_has_a_file_of_every_kind():
    folder = HERE / write.version()
    kinds = {"method": sc.methods, "map": sc.maps, "estimator": sc.estimates}
    wanted = {f"{kind}-{name}" for kind, of in kinds.items() for name in of.names()}
    wanted |= {"grouped", "monitor", "monitor-state", "statistics"}
    assert wanted <= {file.stem for file in folder.glob("*.json")}, (
        "run tests/compatibility/write.py"
    )
