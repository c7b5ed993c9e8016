"""Bank and target are said in the same ways in every command that takes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import shiftcal as sc
from shiftcal.cli.main import program

COMMANDS = {
    "compare": "compare --resamples 0",
    "estimate": "estimate --estimator atc",
    "report": "report --resamples 0 -o out.html",
}


@pytest.fixture
def ladder(files):
    sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save("ladder")
    return files / "ladder"


def said(document):
    """A document without what differs from one run to the next."""
    document.pop("json_output", None)
    document.get("report", {}).pop("provenance", None)
    return json.dumps(document, sort_keys=True)


@pytest.mark.parametrize("command", ["compare", "estimate", "report"])
def test_places_and_options_say_the_same(ladder, shiftcal_json, command):
    words = COMMANDS[command]
    found = {
        said(shiftcal_json(words, *way.split()))
        for way in (
            "ladder target.npz",
            "--bank ladder --target target.npz",
            "--bank ladder target.npz",
            "ladder --target target.npz",
        )
    }
    assert len(found) == 1


def test_fit_and_apply_take_both(ladder, shiftcal):
    assert shiftcal("fit ladder --method sac -o a.json").status == 0
    assert shiftcal("fit --bank ladder --method sac -o b.json").status == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert shiftcal("apply a.json target.npz -o a.npz").status == 0
    assert shiftcal("apply a.json --target target.npz -o b.npz").status == 0
    assert Path("a.npz").read_bytes() == Path("b.npz").read_bytes()


def test_the_folder_of_a_run_is_bank_target_and_features(ladder, shiftcal_json):
    Path("run").mkdir()
    shutil.move("ladder", "run/bank")
    shutil.copy("target.npz", "run/target.npz")
    shutil.copy("train.npz", "run/source-train.npz")
    document = shiftcal_json("compare run --resamples 0")
    assert document["target"] == str(Path("run", "target.npz"))
    assert {"cpcs", "transcal"} <= {each["method"] for each in document["methods"]}
    other = shiftcal_json("compare run unlabelled.npz --resamples 0 --method sac")
    assert other["target"] == "unlabelled.npz"


def test_labels_that_came_later_judge_a_comparison(ladder, shiftcal_json, shiftcal):
    words = "compare ladder unlabelled.npz --resamples 0 --method sac --method ts"
    assert shiftcal_json(words)["methods"][0]["metrics"] is None
    document = shiftcal_json(words, "--labels target.npz")
    assert document["labels"] == "target.npz"
    assert [each["method"] for each in document["methods"]] == ["ts", "sac"]
    assert document["methods"][0]["metrics"]["accuracy"]["value"] > 0.2
    with_own = shiftcal_json("compare ladder target.npz --resamples 0 --method ts")
    assert with_own["methods"][0]["metrics"] == document["methods"][0]["metrics"]


def commands():
    for name, top in program().commands.items():
        for below, command in getattr(top, "commands", {"": top}).items():
            yield f"{name} {below}".strip(), command


def test_one_word_stands_for_one_thing_in_all_commands():
    """Every option that several commands have takes a value everywhere, or nowhere."""
    # One flag and one value of a name are kept for what was written with them before.
    kept = {"--table", "--statistics"}
    kinds = {}
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                for word in parameter.opts:
                    kinds.setdefault(word, {}).setdefault(parameter.is_flag, []).append(name)
    mixed = {word for word, by_kind in kinds.items() if len(by_kind) > 1}
    assert mixed == kept
    assert set(kinds["-o"]) == set(kinds["--output"])


def test_every_command_that_writes_one_thing_takes_dash_o_for_it():
    # They print, or append to files that their own options name.
    printing = {
        "data check", "data list", "doctor", "evaluate", "compare", "estimate",
        "list", "monitor",
    }  # fmt: skip
    having = {
        name
        for name, command in commands()
        for parameter in command.params
        if {"-o", "--output"} <= set(parameter.opts)
    }
    assert having == {name for name, _ in commands()} - printing
