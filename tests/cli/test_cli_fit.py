"""``shiftcal fit``."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal import SAC, STS, SurrogateBank, load, maps

KEYS = {
    "shiftcal",
    "command",
    "method",
    "output",
    "input",
    "n_classes",
    "classes",
    "settings",
    "first_set_only",
    "temperature",
    "sets",
    "warnings",
}


def test_it_saves_what_the_python_interface_fits(files, shiftcal, bank):
    done = shiftcal("fit --method sac -o sac.json", bank)
    assert (done.status, done.err) == (0, "")
    expected = SAC().fit(SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]))
    assert [m.temperature_ for m in load("sac.json").maps_] == [
        m.temperature_ for m in expected.maps_
    ]
    assert load("sac.json").class_names_[0] == "ant"
    for m in expected.maps_:
        assert f"{m.temperature_:.3f}" in done.out
    assert "written to sac.json" in done.out


def test_the_json_document(files, shiftcal_json, bank):
    document = shiftcal_json("fit --method sts -o sts.json", bank)
    assert set(document) == KEYS
    assert document["command"] == "fit"
    assert document["settings"] == {"map": "temperature", "input": "logits"}
    expected = STS().fit(SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]))
    assert document["temperature"] == expected.map_.temperature_
    assert [s["name"] for s in document["sets"]] == ["clean", "s1", "s2"]
    assert {s["n"] for s in document["sets"]} == {400}
    assert document["classes"][-1] == "fox"


def test_a_saved_bank_gives_the_same_as_its_files(files, shiftcal_json, bank):
    SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save(files / "bank")
    a = shiftcal_json("fit --method sac -o a.json", bank)
    b = shiftcal_json("fit --method sac -o b.json --bank bank")
    assert a["sets"] == b["sets"]


def test_set_reaches_settings_that_have_no_option(files, shiftcal, bank):
    options = "--source-train train.npz --set reading=free --set bias=false --set clip=10"
    assert shiftcal("fit --method transcal -o t.json", bank, options).status == 0
    transcal = load("t.json")
    assert (transcal.reading, transcal.bias, transcal.clip) == ("free", False, 10)


def test_settings_of_the_map_reach_it(files, shiftcal, shiftcal_json, bank):
    words = "fit --method sac --map histogram --set map.n_bins=7 -o sac.json"
    assert shiftcal(words, bank).status == 0
    sac = load("sac.json")
    assert {m.n_bins for m in sac.maps_} == {7}
    expected = SAC(map=maps.get("histogram")(n_bins=7)).fit(
        SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"])
    )
    for ours, theirs in zip(sac.maps_, expected.maps_, strict=True):
        np.testing.assert_array_equal(ours.accuracy_, theirs.accuracy_)
    settings = shiftcal_json(words, bank)["settings"]
    assert (settings["map"], settings["map.n_bins"]) == ("histogram", 7)


@pytest.mark.parametrize("method", ["vanilla", "ts", "cpcs --source-train train.npz"])
def test_a_method_that_uses_the_first_set_only_says_so(
    files, shiftcal, shiftcal_json, bank, method
):
    name = method.split()[0]
    out = shiftcal("fit -o out.json --method", method, bank).out
    assert f"{name} uses the first set only" in out
    assert f"{name} fitted on 1 set of" in out
    assert shiftcal_json("fit -o out.json --method", method, bank)["first_set_only"] is True
    alone = shiftcal("fit -o out.json --method", method, "--surrogate clean.npz").out
    assert "first set only" not in alone


def test_the_kind_of_input_follows_from_the_files(files, shiftcal):
    rng = np.random.default_rng(0)
    np.savez("p.npz", probabilities=rng.dirichlet(np.ones(3), 60), labels=rng.integers(0, 3, 60))
    assert shiftcal("fit --method ts -o ts.json --surrogate p.npz").status == 0
    assert load("ts.json").input == "probabilities"


def test_a_warning_is_one_line_on_stderr_and_in_the_document(files, shiftcal, shiftcal_json):
    labels = np.arange(40) % 4
    np.savez("perfect.npz", logits=5.0 * np.eye(4)[labels], labels=labels)
    words = "fit --method ts -o ts.json --surrogate perfect.npz"
    done = shiftcal(words)
    assert done.status == 0
    assert done.err.startswith("warning: perfect: ")
    assert done.err.count("\n") == 1
    assert "FitWarning" not in done.err
    assert shiftcal_json(words)["warnings"] == [done.err[len("warning: ") :].strip()]
