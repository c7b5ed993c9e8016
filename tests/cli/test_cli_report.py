"""``shiftcal report``, of files and of studies."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_study import write_study

import shiftcal as sc
from shiftcal import studies
from shiftcal.cli.main import run

# No draws: intervals are tested elsewhere.
QUICK = "--resamples 0 -o report.html"


@pytest.fixture
def ladder(files, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1717113600")
    sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save("ladder")
    return files


def facts_of(path="report.html"):
    text = Path(path).read_text("utf-8")
    return json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_and_the_terminal_say_the_same(ladder, shiftcal):
    done = shiftcal("report --bank ladder --target target.npz", QUICK)
    assert (done.status, done.err) == (0, "")
    facts = facts_of()
    assert facts["method"] == "rehearsal"
    assert facts["provenance"]["date"] == "2024-05-31"
    verdict = facts["verdict"]
    for text in (verdict["headline"], verdict["reason"], *verdict["advice"]):
        assert text.replace("\u00a0", " ") in done.out
    assert done.out.endswith("written to report.html\n")
    scores = sc.read_scores("target.npz")
    right = (scores.values.argmax(axis=1) == scores.labels).mean()
    assert facts["target"]["accuracy"]["value"] == pytest.approx(right)


def test_json_is_that_of_the_page(ladder, shiftcal_json):
    document = shiftcal_json("report --bank ladder --target unlabelled.npz --method sac", QUICK)
    assert set(document) == {"shiftcal", "command", "output", "report", "warnings"}
    assert document["output"] == "report.html"
    assert document["report"] == facts_of()
    assert document["report"]["shown"]["kind"] == "surrogate"


def test_the_command_on_the_page_makes_the_page_again(ladder, shiftcal):
    words = "--surrogate clean.npz --surrogate s2.npz --target target.npz --level 0.9 --seed 3"
    arguments = ["report", *words.split(), "--resamples", "40", "-o", "report.html"]
    assert run([*arguments, "--title", "It's <b>", "--method", "sac", "--set", "distance=ks"]) == 0
    first = Path("report.html").read_bytes()
    facts = facts_of()
    told = shlex.split(facts["provenance"]["command"])
    Path("report.html").unlink()
    assert run(told[1:]) == 0
    assert Path("report.html").read_bytes() == first
    assert facts["choice"]["distance"] == "ks"
    assert facts["title"] == "It's <b>"


@pytest.mark.parametrize("words", ["--method sac", "--seed 7 --level 0.8", "--set seed=2 --seed 7"])
def test_the_commands_it_recommends_run_and_give_its_numbers(ladder, shiftcal, words):
    assert shiftcal("report --bank ladder --target unlabelled.npz", words, QUICK).status == 0
    facts = facts_of()
    for line in facts["provenance"]["usage"].splitlines():
        assert run(shlex.split(line)[1:]) == 0
    mean = sc.read_scores("calibrated.npz").values.max(axis=1).mean()
    told = next(one for one in facts["methods"] if one["name"] == facts["method"])
    assert told["mean_confidence"] == pytest.approx(mean)


def test_images_are_shown_where_confidence_changed_most(ladder, shiftcal):
    rng = np.random.default_rng(0)
    np.save("images.npy", rng.integers(0, 256, (500, 16, 16, 3), dtype=np.uint8))
    words = "--bank ladder --target unlabelled.npz --images images.npy"
    assert shiftcal("report", words, QUICK).status == 0
    assert len(facts_of()["examples"]) == 12
    assert Path("report.html").read_text("utf-8").count("data:image/png;base64,") == 12


def test_features_allow_more_methods(ladder, shiftcal):
    words = "--bank ladder --target target.npz --source-train train.npz"
    assert shiftcal("report", words, QUICK).status == 0
    assert {"cpcs", "transcal"} <= {one["name"] for one in facts_of()["methods"]}


def test_an_input_is_not_replaced(ladder, refused):
    Path("target.html").write_bytes(Path("target.npz").read_bytes())
    Path("bank.html").symlink_to("ladder/bank.json")
    words = "--bank ladder --target target.npz -o"
    assert "must not be replaced" in refused("report", words, "bank.html")
    assert "must not be replaced" in refused(
        "report --bank ladder --target target.npz --labels target.html -o target.html"
    )


def test_hostile_and_damaged_targets_are_refused(ladder, refused):
    Path("cut.npz").write_bytes(Path("target.npz").read_bytes()[:2000])
    assert "cut.npz" in refused("report --bank ladder --target cut.npz", QUICK)
    logits = np.load("target.npz")["logits"]
    np.savez("nan.npz", logits=np.where(np.arange(6) == 2, np.nan, logits))
    assert "nan.npz" in refused("report --bank ladder --target nan.npz", QUICK)
    np.savez("wide.npz", logits=logits[:, :5])
    assert "they have 6" in refused("report --bank ladder --target wide.npz", QUICK)
    np.savez("probs.npz", logits=np.full((300, 6), 1 / 6))
    assert "probabilities" in refused("report --bank ladder --target probs.npz", QUICK)
    assert not Path("report.html").exists()


def test_a_target_of_another_model_is_warned_of(ladder, shiftcal):
    bank = sc.SurrogateBank.load("ladder")
    origin = {"model": {"fingerprint": "a", "preprocessing": {}}}
    sc.SurrogateBank(bank.sets, classes=bank.classes, origin=origin).save("known")
    other = json.dumps({"model": {"fingerprint": "b", "preprocessing": {}}})
    np.savez("other.npz", logits=np.load("target.npz")["logits"], origin=np.array(other))
    done = shiftcal("report --bank known --target other.npz --method sac", QUICK)
    assert done.status == 0
    assert "warning: other.npz: the target was scored by another model" in done.err
    assert "flagged: another-model" in done.out


QUICK_STUDY = "--resamples 0 -o report.html"


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


def facts_of_study(path="report.html"):
    text = Path(path).read_text("utf-8")
    return json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])


def test_a_target_of_a_study_has_the_numbers_of_its_records(study, shiftcal):
    assert shiftcal("report study contrast-5 --method sac --bins 4", QUICK_STUDY).status == 0
    facts = facts_of_study()
    assert facts["target"]["name"] == "contrast-5"
    assert [one["name"] for one in facts["sets"]] == ["clean", "pixelate-1", "pixelate-3"]
    for row in studies.Run("study").records:
        if (row.split, row.target) == (0, "contrast-5") and row.label != "Oracle":
            told = next(one for one in facts["methods"] if one["name"] == row.label.lower())
            assert told["ece"]["value"] == pytest.approx(row.ece)
            assert facts["target"]["accuracy"]["value"] == pytest.approx(row.accuracy)


def test_the_command_on_its_page_makes_it_again(study, shiftcal):
    assert shiftcal("report study --target brightness-2", QUICK_STUDY).status == 0
    first = Path("report.html").read_bytes()
    told = facts_of_study()["provenance"]
    assert set(told["files"]) == {"study/plan.toml", "study/scores/index.json"}
    assert told["usage"] == ""
    assert run(shlex.split(told["command"])[1:]) == 0
    assert Path("report.html").read_bytes() == first


def test_damaged_scores_are_told(study, refused):
    index = json.loads(Path("study/scores/index.json").read_text("utf-8"))
    (Path("study") / index["sets"]["contrast-5"]["file"]).write_bytes(b"no scores")
    assert "damaged or was replaced" in refused("report study contrast-5", QUICK_STUDY)


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
    assert "none in adapted/trainings is finished" in refused("report adapted", QUICK_STUDY)
    done = Path("adapted/trainings/A2B/cdan-1/seed-0")
    done.mkdir(parents=True)
    (done / "adapt.json").write_text("{}", "utf-8")
    assert f"shiftcal report {done} -o report.html" in refused("report adapted x", QUICK_STUDY)


def test_a_run_of_adapt_is_one_word(files, shiftcal):
    Path("run").mkdir()
    sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save("run/bank")
    shutil.copy("target.npz", "run/target.npz")
    shutil.copy("train.npz", "run/source-train.npz")
    assert shiftcal("report run", QUICK_STUDY).status == 0
    facts = facts_of_study()
    assert {"cpcs", "transcal"} <= {one["name"] for one in facts["methods"]}
    assert set(facts["provenance"]["files"]) == {
        "run/bank/bank.json", "run/target.npz", "run/source-train.npz"
    }  # fmt: skip
