"""Grouped calibrations: methods that cannot be used, files, and how they are shown."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ladder_data import draw, make_bank

import shiftcal as sc
from shiftcal.errors import FileError, InputError
from shiftcal.files import checksum_of
from shiftcal.grouping import GroupedCalibration

BANK = make_bank(400)
Z = np.concatenate([draw(300, 1.2, seed=1)[0], draw(60, 0.4, seed=2)[0], draw(4, 0.8, seed=3)[0]])
GROUPS = ["north"] * 300 + ["south, old"] * 60 + ["3"] * 4


@pytest.fixture(scope="module")
def sac():
    return sc.SAC().fit(BANK)


@pytest.fixture
def grouped(sac):
    made = GroupedCalibration(sac)
    made.adapt(Z, GROUPS)
    return made


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (sc.TS().fit(BANK), "ts cannot be adapted to groups"),
        (sc.PseudoCal().fit(BANK), "pseudocal cannot be adapted to groups"),
        (sc.SAC, "method must be a fitted method"),
        ("sac", "method must be a fitted method.*got 'sac'"),
    ],
)
def test_a_method_that_cannot_choose_for_groups_raises(method, message):
    with pytest.raises(InputError, match=message):
        GroupedCalibration(method).adapt(Z, GROUPS)


def test_a_method_with_features_needs_those_of_the_target():
    rng = np.random.default_rng(0)
    bank = sc.SurrogateBank.from_arrays(
        [BANK.clean.logits], BANK.clean.labels, features=rng.standard_normal((400, 3))
    )
    method = sc.CPCS().fit(bank, source_features=rng.standard_normal((100, 3)))
    with pytest.raises(InputError, match="Missing: features= of the target in adapt"):
        GroupedCalibration(method).adapt(Z, GROUPS)
    with pytest.raises(InputError, match="features"):
        GroupedCalibration(method).adapt(Z, GROUPS, np.ones((5, 3)))


@pytest.mark.parametrize("settings", [{}, {"map": "isotonic"}, {"distance": "ks"}])
def test_what_is_saved_predicts_the_same(settings, tmp_path):
    made = GroupedCalibration(sc.SAC(**settings).fit(BANK))
    made.adapt(Z, GROUPS)
    made.save(tmp_path / "by-site.json")
    again = sc.load(tmp_path / "by-site.json")
    assert isinstance(again, GroupedCalibration)
    assert again.selections_ == made.selections_
    assert list(again.selections_.groups) == ["north", "south, old", "3"]
    np.testing.assert_array_equal(again.predict_proba(Z, GROUPS), made.predict_proba(Z, GROUPS))
    again.adapt(Z, GROUPS)
    assert again.selections_ == made.selections_


def rewrite(path, change):
    document = json.loads(path.read_text())
    document.pop("checksum")
    change(document["object"])
    document["checksum"] = checksum_of(document)
    path.write_text(json.dumps(document))


def choice_of(node):
    return node["fitted"]["selections_"]["groups"]["north"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda node: choice_of(node).update(rows="many"), "holds 'many' where"),
        (lambda node: node["fitted"].pop("selections_"), "lacks its attribute 'selections_'"),
    ],
)
def test_a_file_that_does_not_fit_together_raises(grouped, tmp_path, change, message):
    path = tmp_path / "by-site.json"
    grouped.save(path)
    rewrite(path, change)
    with pytest.raises(FileError, match=message):
        sc.load(path)


def test_the_table_shows_every_group(grouped):
    lines = str(grouped.selections_).splitlines()
    assert lines[0].split() == ["group", "rows", "own", "T", "weight", "T", "own", "set", "flags"]
    assert [line.split("  ")[0] for line in lines[1:4]] == ["north", "south, old", "3"]
    choice = grouped.selections_.groups["3"]
    for cell in (f"{choice.own.temperature:.3f}", f"{choice.weight:.2f}", "few-rows"):
        assert cell in lines[3]
    assert lines[4].startswith("all rows: set ")
    assert repr(grouped.selections_) == "<sac selections of 3 groups>"


def test_groups_outside_the_bank_are_named(sac):
    flat = np.random.default_rng(0).standard_normal((200, 6)) / 100
    chosen = GroupedCalibration(sac).adapt(np.concatenate([Z, flat]), [*GROUPS, *["fogged"] * 200])
    assert chosen.outside == ("fogged",)
    assert chosen.to_dict()["outside"] == ("fogged",)


def test_plain_values_go_into_json(grouped):
    document = json.loads(json.dumps(grouped.selections_.to_dict()))
    assert document["groups"]["north"]["rows"] == 300
    assert document["groups"]["north"]["own"]["method"] == "sac"
    assert document["everything"]["n_target"] == 364
    assert document["borrowed"] == pytest.approx(grouped.selections_.borrowed)
