"""Saved methods: nothing lost, nothing trusted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ladder_data import make_bank

from shiftcal import SAC, load
from shiftcal.errors import FileError, InputError
from shiftcal.files import checksum_of

BANK = make_bank(300)


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "sac.json"
    SAC(distance="ks").fit(BANK).save(path)
    return path


def rewrite(path: Path, change) -> None:
    """Change the document and put a fitting checksum, as a hostile writer would."""
    document = json.loads(path.read_text())
    document.pop("checksum")
    change(document)
    document["checksum"] = checksum_of(document)
    path.write_text(json.dumps(document))


def test_a_method_of_temperatures_is_one_file_of_json(tmp_path):
    SAC().fit(BANK).save(tmp_path / "sac.json")
    assert [file.name for file in tmp_path.iterdir()] == ["sac.json"]
    document = json.loads((tmp_path / "sac.json").read_text())
    assert document["version"] == 1
    assert document["written_by"].startswith("shiftcal ")
    assert document["object"]["settings"]["input"] == "logits"


def test_saving_again_replaces_the_one_file_with_its_arrays(saved):
    method = SAC(distance="wasserstein").fit(make_bank(301))
    method.save(saved)
    assert list(saved.parent.iterdir()) == [saved]
    again = load(saved)
    assert again.distance == "wasserstein"
    for one, other in zip(again.samples_, method.samples_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_setting_that_json_does_not_know_is_refused(tmp_path):
    method = SAC(seed=0).fit(BANK)
    method.seed = complex(1)
    with pytest.raises(InputError, match="a value of type complex cannot be saved"):
        method.save(tmp_path / "sac.json")
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_is_a_clear_error(saved):
    content = saved.read_bytes()
    for length in range(0, len(content) - 2, max(1, len(content) // 40)):
        saved.write_bytes(content[:length])
        with pytest.raises(FileError, match=r"is damaged|is not a saved shiftcal method"):
            load(saved)


def test_a_changed_number_is_noticed(saved):
    saved.write_text(saved.read_text().replace('"n_classes_": 6', '"n_classes_": 7'))
    with pytest.raises(FileError, match="checksum does not match"):
        load(saved)


def test_a_file_from_the_future_asks_for_an_upgrade(saved):
    rewrite(saved, lambda d: d.update(version=2, written_by="shiftcal 9.0"))
    with pytest.raises(FileError, match=r"version 2, written by shiftcal 9\.0.*Upgrade"):
        load(saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["object"].update(name="os"), "no method is called 'os'"),
        (lambda d: d["object"].update(kind="module"), "unknown kind 'module'"),
        (lambda d: d["object"]["settings"].update(evil=1), "evil"),
        (lambda d: d["object"]["fitted"].update(evil_=1), "has no attribute 'evil_'"),
        (lambda d: d["object"]["fitted"].pop("maps_"), "lacks its attribute 'maps_'"),
        (lambda d: d["object"]["fitted"].update(n_classes_="six"), "'six' where"),
        (lambda d: d["object"]["fitted"].update(maps_=3), "3 where"),
        (lambda d: d["object"]["fitted"].update(ladder_=[{"name": 1}]), "1 where"),
        (lambda d: d.update(arrays="no base64!"), "is damaged"),
        (lambda d: d.update(arrays=None), "is damaged"),
        (lambda d: d.pop("object"), "is damaged"),
        (lambda d: d.update(object=[]), "is damaged"),
    ],
)
def test_a_hostile_file_is_refused(saved, change, words):
    rewrite(saved, change)
    with pytest.raises(FileError, match=words):
        load(saved)


@pytest.mark.parametrize("name", [".", "", "folder"])
def test_a_method_is_not_saved_to_a_folder(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match=r"it is a folder\. Name the file to write"):
        SAC().fit(BANK).save(name)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]
