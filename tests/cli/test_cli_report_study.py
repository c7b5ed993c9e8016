"""``shiftcal report`` of a target of a study, and of a run of ``shiftcal train``."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from tiny_study import write_study

import shiftcal as sc
from shiftcal import studies
from shiftcal.cli.main import run

QUICK = "--resamples 0 -o report.html"


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    write_study(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        plan = studies.read_plan(Path("mine.toml").read_text("utf-8"), data=folder, where="mine")
        studies.reproduce(plan, folder / "run")
    return folder / "run"


@pytest.fixture
def study(files, once):
    shutil.copytree(once, "study")
    return files


def facts_of(path="report.html"):
    text = Path(path).read_text("utf-8")
    return json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])


def test_a_target_of_a_study_has_the_numbers_of_its_records(study, shiftcal):
    assert shiftcal("report study contrast-5 --method sac --bins 4", QUICK).status == 0
    facts = facts_of()
    assert facts["target"]["name"] == "contrast-5"
    assert [one["name"] for one in facts["sets"]] == ["clean", "pixelate-1", "pixelate-3"]
    for row in studies.Run("study").records:
        if (row.split, row.target) == (0, "contrast-5") and row.label != "Oracle":
            told = next(one for one in facts["methods"] if one["name"] == row.label.lower())
            assert told["ece"]["value"] == pytest.approx(row.ece)
            assert facts["target"]["accuracy"]["value"] == pytest.approx(row.accuracy)


def test_the_command_on_its_page_makes_it_again(study, shiftcal):
    assert shiftcal("report study --target brightness-2", QUICK).status == 0
    first = Path("report.html").read_bytes()
    told = facts_of()["provenance"]
    assert set(told["files"]) == {"study/plan.toml", "study/scores/index.json"}
    assert told["usage"] == ""
    assert run(shlex.split(told["command"])[1:]) == 0
    assert Path("report.html").read_bytes() == first


def test_damaged_scores_are_told(study, refused):
    index = json.loads(Path("study/scores/index.json").read_text("utf-8"))
    (Path("study") / index["sets"]["contrast-5"]["file"]).write_bytes(b"no scores")
    assert "damaged or was replaced" in refused("report study contrast-5", QUICK)


def test_of_a_study_that_adapts_a_network_is_named(study, refused):
    text = """study = "adaptation"
methods = ["vanilla"]
seeds = [0]
tasks = "all"
trainers = ["source-only"]
[network]
backbone = "digits-cnn"
[[domains]]
name = "a"
images = "a.npz"
[[domains]]
name = "b"
images = "b.npz"
"""
    Path("adapted").mkdir()
    Path("adapted/plan.toml").write_text(text, "utf-8")
    assert "none in adapted/trainings is finished" in refused("report adapted", QUICK)
    done = Path("adapted/trainings/A2B/cdan-1/seed-0")
    done.mkdir(parents=True)
    (done / "adapt.json").write_text("{}", "utf-8")
    assert f"shiftcal report {done} -o report.html" in refused("report adapted x", QUICK)


def test_a_run_of_adapt_is_one_word(files, shiftcal):
    Path("run").mkdir()
    sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save("run/bank")
    shutil.copy("target.npz", "run/target.npz")
    shutil.copy("train.npz", "run/source-train.npz")
    assert shiftcal("report run", QUICK).status == 0
    facts = facts_of()
    assert {"cpcs", "transcal"} <= {one["name"] for one in facts["methods"]}
    assert set(facts["provenance"]["files"]) == {
        "run/bank/bank.json", "run/target.npz", "run/source-train.npz"
    }  # fmt: skip
