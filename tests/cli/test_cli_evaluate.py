"""``shiftcal evaluate``, ``compare`` and ``estimate``, and how bank and target are named."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import shiftcal as sc
from shiftcal import estimates, methods, metrics
from shiftcal.cli.main import program

QUICK = "--resamples 20"
SETS = ["clean.npz", "s1.npz", "s2.npz"]


@pytest.fixture
def ladder(files):
    bank = sc.SurrogateBank.from_files(SETS)
    bank.save("ladder")
    return bank


def of(path="target.npz"):
    scores = sc.read_scores(path)
    probs = scores.as_kind("probabilities").values
    return probs, scores.labels, probs.max(axis=1), probs.argmax(axis=1) == scores.labels


def test_fit_apply_evaluate_gives_what_the_python_interface_gives(fitted, shiftcal, shiftcal_json):
    assert shiftcal("apply sac.json target.npz -o out.npz").status == 0
    values = shiftcal_json("evaluate out.npz --resamples 50 --seed 4")["metrics"]
    target = sc.read_scores("target.npz")
    sac = sc.SAC().fit(sc.SurrogateBank.from_files(SETS))
    sac.adapt(target.values)
    probs = sac.predict_proba(target.values)
    confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == target.labels
    ece = sc.bootstrap(sc.ece, confidence, correct, n_resamples=50, seed=4)
    # a row of the file is divided by its sum once more when it is read
    close = {"rel": 1e-12, "abs": 1e-12}
    assert values["ece"] == pytest.approx(
        {"value": ece.value, "low": ece.low, "high": ece.high}, **close
    )
    assert values["nll"]["value"] == pytest.approx(sc.nll(probs, target.labels), **close)
    assert values["brier"]["value"] == pytest.approx(sc.brier(probs, target.labels), **close)
    assert values["accuracy"]["value"] == pytest.approx(correct.mean(), **close)


def test_options_reach_the_metrics_and_intervals(files, shiftcal_json):
    probs, labels, confidence, correct = of()
    document = shiftcal_json("evaluate target.npz --bins 7 --binning width", QUICK)
    expected = sc.ece(confidence, correct, n_bins=7, binning="width")
    assert document["metrics"]["ece"]["value"] == pytest.approx(expected, rel=1e-12)
    document = shiftcal_json("evaluate target.npz --level 0.5 --seed 9 --resamples 40")
    expected = sc.bootstrap(sc.nll, probs, labels, level=0.5, seed=9, n_resamples=40)
    assert document["metrics"]["nll"]["low"] == pytest.approx(expected.low, rel=1e-12)
    document = shiftcal_json("evaluate target.npz --resamples 0 --metric all")
    assert set(document["metrics"]) == set(metrics.names())
    assert document["metrics"]["mce"]["value"] == pytest.approx(sc.mce(confidence, correct))
    assert document["metrics"]["ece"]["low"] is None


def test_the_table_of_bins(files, shiftcal, shiftcal_json):
    document = shiftcal_json("evaluate target.npz --table --bins 4 --resamples 0")
    assert set(document["bins"]) == {"lower", "upper", "count", "confidence", "accuracy", "gap"}
    assert sum(document["bins"]["count"]) == 500
    assert " bin " in shiftcal("evaluate target.npz --table --resamples 0").out


@pytest.mark.parametrize(("limit", "status"), [(0.9, 0), (0.001, 1)])
def test_a_gate(files, shiftcal, shiftcal_json, limit, status):
    done = shiftcal(f"evaluate target.npz --max-ece {limit}", QUICK)
    assert (done.status, done.err.startswith("gate failed: ECE ")) == (status, bool(status))
    document = shiftcal_json(f"evaluate target.npz --max-ece {limit}", QUICK, status=status)
    assert document["gate"] == {"max_ece": limit, "passed": not status}


def test_labels_can_come_from_another_file_or_in_part(files, shiftcal_json):
    target = sc.read_scores("target.npz")
    np.save("truth.npy", target.labels)
    own = shiftcal_json("evaluate target.npz --resamples 0")
    other = shiftcal_json("evaluate unlabelled.npz --labels truth.npy --resamples 0")
    assert own["metrics"] == other["metrics"]
    rows = np.random.default_rng(3).permutation(500)[:200]
    lines = [f"{target.ids[row]},{target.labels[row]}\n" for row in rows]
    Path("part.csv").write_text("id,label\n" + "".join(lines), encoding="utf-8")
    words = "evaluate unlabelled.npz --labels part.csv --labelled-only --resamples 0"
    document = shiftcal_json(words)
    assert (document["n"], document["n_unlabelled"]) == (200, 300)
    probs, labels, *_ = of()
    # the same rows in another order
    expected = sc.nll(probs[rows], labels[rows])
    assert document["metrics"]["nll"]["value"] == pytest.approx(expected, rel=1e-12)


def test_all_methods_are_compared_where_files_allow_it(files, shiftcal_json, bank):
    document = shiftcal_json("compare --target target.npz --source-train train.npz", bank, QUICK)
    needs_model = {name for name in methods.names() if methods.get(name).uses_mixed}
    assert document["missing"].keys() == needs_model
    names = [m["method"] for m in document["methods"]]
    correcting = {name for name in methods.names() if methods.get(name).corrects}
    assert set(names) == set(methods.names()) - needs_model - correcting
    assert names[:6] == ["vanilla", "ts", "cpcs", "transcal", "sts", "sac"]


def test_the_numbers_are_those_of_the_python_interface(files, shiftcal_json, bank):
    document = shiftcal_json("compare --target target.npz", bank, QUICK)
    sets = sc.SurrogateBank.from_files(SETS)
    target = sc.read_scores("target.npz")
    for result in document["methods"]:
        method = methods.get(result["method"])().fit(sets)
        selection = method.adapt(target.values)
        probs = method.predict_proba(target.values)
        confidence, correct = probs.max(axis=1), probs.argmax(axis=1) == target.labels
        values = result["metrics"]
        assert result["selection"]["temperature"] == selection.temperature
        # probabilities are divided by their sum once more on the way into a metric
        assert values["ece"]["value"] == pytest.approx(sc.ece(confidence, correct), rel=1e-9)
        assert values["nll"]["value"] == pytest.approx(sc.nll(probs, target.labels), rel=1e-9)
        assert values["brier"]["value"] == pytest.approx(sc.brier(probs, target.labels), rel=1e-9)
        assert values["accuracy"]["value"] == pytest.approx(correct.mean(), rel=1e-9)
        assert result["mean_confidence"] == pytest.approx(confidence.mean(), rel=1e-9)


def test_the_table_says_what_is_missing(files, shiftcal, shiftcal_json, bank):
    done = shiftcal("compare --target target.npz", bank, QUICK)
    assert (done.status, done.err) == (0, "")
    assert "missing: cpcs, transcal (needs features of the training samples (--source-" in done.out
    assert re.search(r"^sac +(clean|s1|s2) ", done.out, re.MULTILINE)
    done = shiftcal("compare --target unlabelled.npz", bank)
    assert "unlabelled.npz has no labels" in done.out
    assert "ECE" not in done.out
    document = shiftcal_json("compare --target unlabelled.npz", bank)
    assert all(m["metrics"] is None for m in document["methods"])


def test_a_target_of_one_row_has_no_interval(files, shiftcal_json, bank):
    target = sc.read_scores("target.npz")
    np.savez("one.npz", logits=target.values[:1], labels=target.labels[:1])
    document = shiftcal_json("compare --target one.npz --method ts", bank)
    assert document["methods"][0]["metrics"]["ece"]["low"] is None


def test_every_estimator_is_shown(ladder, shiftcal_json):
    document = shiftcal_json("estimate ladder target.npz")
    shown = {e["estimator"] for e in document["estimates"]} | set(document["missing"])
    by_method = {
        f"mean-confidence:{name}"
        for name in methods.names()
        if not methods.get(name).uses_features and not methods.get(name).uses_mixed
    } - {"mean-confidence:rehearsal", "mean-confidence:realign"}  # "rehearsed", and the metrics
    assert shown == (set(estimates.names()) - {"mean-confidence"}) | by_method
    assert {"mean-confidence:sac", "mean-confidence:ts"} <= shown - set(document["missing"])


def test_estimates_are_those_of_the_python_interface(ladder, shiftcal, shiftcal_json):
    words = "estimate ladder target.npz --level 0.8 --estimator atc --estimator mean-confidence:sts"
    document = shiftcal_json(words)
    target = sc.read_scores("target.npz")
    truth = (target.values.argmax(axis=1) == target.labels).mean()
    assert document["accuracy"] == pytest.approx(truth, rel=1e-12)
    makers = [estimates.get("atc")(), estimates.get("mean-confidence")(method="sts")]
    for shown, maker in zip(document["estimates"], makers, strict=True):
        found = maker.fit(ladder).estimate(target.values, level=0.8)
        assert [shown[key] for key in ("value", "low", "high")] == pytest.approx(
            [found.value, found.low, found.high], rel=1e-12
        )
        assert shown["error"] == pytest.approx(found.value - truth, abs=1e-12)
    out = shiftcal(words).out
    assert re.search(r"^atc +0\.\d{4} +0\.\d{4} to [01]\.\d{4} +-?0\.\d{4}$", out, re.MULTILINE)
    assert f"true accuracy, by the labels of target.npz: {truth:.4f}" in out


@pytest.mark.parametrize(
    "command",
    ["compare --resamples 0", "estimate --estimator atc", "report --resamples 0 -o out.html"],
)
def test_places_and_options_say_the_same(ladder, shiftcal_json, command):
    found = set()
    for way in (
        "ladder target.npz",
        "--bank ladder --target target.npz",
        "--bank ladder target.npz",
        "ladder --target target.npz",
    ):
        document = shiftcal_json(command, way)
        document.get("report", {}).pop("provenance", None)
        found.add(json.dumps(document, sort_keys=True))
    assert len(found) == 1


def test_fit_and_apply_take_both(ladder, shiftcal):
    assert shiftcal("fit ladder --method sac -o a.json").status == 0
    assert shiftcal("fit --bank ladder --method sac -o b.json").status == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert shiftcal("apply a.json target.npz -o a.npz").status == 0
    assert shiftcal("apply a.json --target target.npz -o b.npz").status == 0
    assert Path("a.npz").read_bytes() == Path("b.npz").read_bytes()


def test_labels_that_came_later_judge_a_comparison(ladder, shiftcal_json):
    words = "compare ladder unlabelled.npz --resamples 0 --method sac --method ts"
    assert shiftcal_json(words)["methods"][0]["metrics"] is None
    document = shiftcal_json(words, "--labels target.npz")
    assert [each["method"] for each in document["methods"]] == ["ts", "sac"]
    with_own = shiftcal_json("compare ladder target.npz --resamples 0 --method ts")
    assert with_own["methods"][0]["metrics"] == document["methods"][0]["metrics"]


def test_one_word_stands_for_one_thing_in_all_commands():
    """Every option that several commands have takes a value everywhere, or nowhere."""
    kinds = {}
    for top in program().commands.values():
        for command in getattr(top, "commands", {"": top}).values():
            for parameter in command.params:
                if parameter.param_type_name == "option":
                    for word in parameter.opts:
                        kinds.setdefault(word, set()).add(parameter.is_flag)
    assert {word for word, both in kinds.items() if len(both) > 1} == {"--table"}


def test_tables_for_papers_and_spreadsheets(files, shiftcal, shiftcal_json, bank):
    words = ("compare --target target.npz --metric aurc --method ts --method sac", bank, QUICK)
    document = shiftcal_json(*words)
    assert json.loads(shiftcal(*words, "--format json").out) == document
    by_name = {one["method"]: one["metrics"] for one in document["methods"]}
    rows = list(csv.DictReader(shiftcal(*words, "--format csv").out.splitlines()))
    assert [row["method"] for row in rows] == ["ts", "sac"]
    for row in rows:
        metrics = by_name[row["method"]]
        found = [float(row[f"ECE{end}"]) for end in ("", " low", " high")]
        assert found == [metrics["ece"][end] for end in ("value", "low", "high")]
        assert float(row["aurc"]) == metrics["aurc"]["value"]
    best = f"{min(one['nll']['value'] for one in by_name.values()):.4f}"
    assert f"**{best}**" in shiftcal(*words, "--format markdown").out
    latex = shiftcal(*words, "--format latex").out
    assert latex.startswith("\\begin{tabular}{llrrrrrrr}\n\\toprule\nmethod & set & T &")
    assert f"\\textbf{{{best}}}" in latex
    table = shiftcal("evaluate target.npz --resamples 0 --format csv").out.splitlines()
    value = shiftcal_json("evaluate target.npz --resamples 0")["metrics"]["ece"]["value"]
    assert f"ece,{value!r}" in table
