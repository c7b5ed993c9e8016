"""``shiftcal report``."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import shiftcal as sc
from shiftcal.cli.main import run

# No draws: intervals are tested elsewhere.
QUICK = "--resamples 0"  # -o is report.html


@pytest.fixture
def ladder(files):
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
    assert document["report"]["shown"] != document["report"]["target"]["name"]


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
    sac = next(one for one in facts["methods"] if one["name"] == "sac")
    assert sac["selection"]["distance"] == "ks"
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
    assert "flagged, another-model: the target was" in done.out
    assert done.out.startswith("Leave the confidences as they are")
