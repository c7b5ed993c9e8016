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


def test_every_option_of_sac_reaches_it(files, shiftcal, bank):
    options = "--distance ks --peek 50 --seed 3 --map brier-temperature"
    assert shiftcal("fit --method sac -o sac.json", bank, options).status == 0
    sac = load("sac.json")
    assert (sac.distance, sac.peek, sac.seed, sac.map) == ("ks", 50, 3, "brier-temperature")


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
    assert f"{name} uses the first set only (clean)" in out
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


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--method ts --distance ks", "ts has no setting --distance. It belongs to: sac."),
        ("--method sts --peek 5", "sts has no setting --peek. It belongs to: sac."),
        ("--method ts --map isotonic", "ts has no setting --map. It belongs to: sac, sts."),
        ("--method vanilla --seed 1", "vanilla has no setting --seed."),
        ("--method sca", "no method is called 'sca'. Did you mean 'sac'?"),
        ("--method sac --map tempurature", "Did you mean 'temperature'?"),
        ("--method sac --distance meen", "Did you mean 'mean'?"),
        ("--method sac --peek 0", "--peek"),
        ("--method sac --set peak=3", "Did you mean 'peek'?"),
        ("--method sac --set peek", "--set must be of the form NAME=VALUE; got 'peek'."),
        ("--method sac --peek 3 --set peek=3", "the setting 'peek' is given twice."),
        (
            "--method sac --map histogram --set map.bins=7",
            "the map histogram has no setting 'bins'.",
        ),
        ("--method sac --map histogram --set map.bins=7", "Did you mean 'n_bins'?"),
        ("--method sac --map isotonic --set map.n_bins=7", "It has no settings."),
        ("--method sac --set map.input=logits", "temperature has no setting 'input'."),
        ("--method sac --set map.t_range=7", "t_range must be two positive numbers"),
        ("--method sac --map histogram --set n_bins=7", "say --set map.n_bins=..."),
        ("--method ts --set map.n_bins=7", "no setting 'map.n_bins' for --set. It belongs to: sac"),
        ("--method sac --map histogrm --set map.n_bins=7", "Did you mean 'histogram'?"),
        ("--method sac --set map.t_range=1 --set map.t_range=1", "'map.t_range' is given twice."),
        ("--method sac --set input=logits", "sac has no setting 'input' for --set."),
        ("--method sac --source-train train.npz", "sac uses no features."),
        ("--method pseudocal", "pseudocal needs the model run over mixed target images, in Python"),
        ("--method cpcs", "cpcs needs features of the training samples (--source-train FILE)."),
        (
            "--method transcal --source-train train.npz --set bias=perhaps",
            "the setting 'bias' must be true or false; got 'perhaps'.",
        ),
        ("--method cpcs --source-train s1.npz", "s1.npz has no features. Save them under"),
        ("--method sac --bank bank", "--bank and --surrogate exclude one another."),
    ],
)
def test_what_cannot_be_meant_is_refused(files, refused, bank, options, reason):
    assert reason in refused("fit -o out.json", bank, options)
    assert not (files / "out.json").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--method ts -o out.json", "surrogate sets are missing."),
        ("--method ts -o out.json --surrogate claen.npz", "Did you mean 'clean.npz'?"),
        ("--method ts -o out.json --surrogate unlabelled.npz", "unlabelled.npz has no labels"),
        ("--method ts -o out.json --bank none", "there is no folder none of a bank"),
        ("--method ts -o no/out.json --surrogate s1.npz", "there is no folder no."),
        ("--method ts -o . --surrogate s1.npz", ". is a folder."),
        (
            "--method ts -o x.npz --surrogate s1.npz",
            "x.npz must end in .json: that is what a fitted method is written as. Name it x.json.",
        ),
        ("--method ts -o x --surrogate s1.npz", "x must end in .json"),
        ("--method ts -o s1.npz --surrogate s1.npz", "s1.npz is read by this command"),
        ("-o out.json --surrogate s1.npz", "missing option '--method'"),
        (
            "--method cpcs -o out.json --surrogate s1.npz --source-train train.npz",
            "cpcs needs features of the clean set (in its scores file).",
        ),
    ],
)
def test_files_that_cannot_be_used_are_refused(files, refused, words, reason):
    before = {file: file.read_bytes() for file in files.iterdir()}
    assert reason in refused("fit", words)
    assert {file: file.read_bytes() for file in files.iterdir()} == before
