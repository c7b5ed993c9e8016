"""``shiftcal evaluate``, ``compare`` and ``estimate``, and how bank and target are named."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import shiftcal as sc
from shiftcal import estimates, methods, metrics
from shiftcal.cli.main import program

QUICK = "--resamples 20"


def of(path="target.npz"):
    scores = sc.read_scores(path)
    probs = scores.as_kind("probabilities").values
    return probs, scores.labels, probs.max(axis=1), probs.argmax(axis=1) == scores.labels


def test_fit_apply_evaluate_gives_what_the_python_interface_gives(fitted, shiftcal, shiftcal_json):
    assert shiftcal("apply sac.json target.npz -o out.npz").status == 0
    values = shiftcal_json("evaluate out.npz --resamples 50 --seed 4")["metrics"]
    bank = sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"])
    target = sc.read_scores("target.npz")
    sac = sc.SAC().fit(bank)
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


def test_bins_and_binning_reach_the_metrics(files, shiftcal_json):
    _, _, confidence, correct = of()
    document = shiftcal_json("evaluate target.npz --bins 7 --binning width", QUICK)
    expected = sc.ece(confidence, correct, n_bins=7, binning="width")
    assert document["metrics"]["ece"]["value"] == pytest.approx(expected, rel=1e-12)
    same = shiftcal_json("evaluate target.npz --bins 7 --binning uniform", QUICK)
    assert same == document
    assert document["binning"] == "width"


def test_level_and_seed_reach_the_interval(files, shiftcal_json):
    probs, labels, *_ = of()
    document = shiftcal_json("evaluate target.npz --level 0.5 --seed 9 --resamples 40")
    expected = sc.bootstrap(sc.nll, probs, labels, level=0.5, seed=9, n_resamples=40)
    assert document["metrics"]["nll"]["low"] == pytest.approx(expected.low, rel=1e-12)


def test_no_resamples_means_no_intervals(files, shiftcal, shiftcal_json):
    document = shiftcal_json("evaluate target.npz --resamples 0")
    assert document["metrics"]["ece"]["low"] is None
    assert "draws" not in shiftcal("evaluate target.npz --resamples 0").out


def test_every_metric_can_be_asked_for(files, shiftcal_json):
    document = shiftcal_json("evaluate target.npz --resamples 0 --metric all")
    assert set(document["metrics"]) == set(metrics.names())
    _, _, confidence, correct = of()
    assert document["metrics"]["mce"]["value"] == pytest.approx(sc.mce(confidence, correct))


def test_the_table_of_bins(files, shiftcal, shiftcal_json):
    document = shiftcal_json("evaluate target.npz --table --bins 4 --resamples 0")
    assert set(document["bins"]) == {"lower", "upper", "count", "confidence", "accuracy", "gap"}
    assert sum(document["bins"]["count"]) == 500
    assert " bin " in shiftcal("evaluate target.npz --table --resamples 0").out


def test_a_gate_that_holds(files, shiftcal, shiftcal_json):
    assert shiftcal("evaluate target.npz --max-ece 0.9", QUICK).status == 0
    gate = shiftcal_json("evaluate target.npz --max-ece 0.9", QUICK)["gate"]
    assert gate == {"max_ece": 0.9, "passed": True}


def test_a_gate_that_fails(files, shiftcal, shiftcal_json):
    done = shiftcal("evaluate target.npz --max-ece 0.001", QUICK)
    assert done.status == 1
    assert "ece" in done.out
    assert done.err.startswith("gate failed: ECE ")
    assert "is larger than --max-ece 0.001" in done.err
    document = shiftcal_json("evaluate target.npz --max-ece 0.001", QUICK, status=1)
    assert document["gate"]["passed"] is False


def test_labels_can_come_from_another_file(files, shiftcal_json):
    scores = sc.read_scores("target.npz")
    np.save("truth.npy", scores.labels)
    a = shiftcal_json("evaluate target.npz --resamples 0")
    b = shiftcal_json("evaluate unlabelled.npz --labels truth.npy --resamples 0")
    assert a["metrics"] == b["metrics"]
    assert b["labels"] == "truth.npy"


def in_part(path, rows):
    target = sc.read_scores("target.npz")
    lines = [f"{target.ids[row]},{target.labels[row]}\n" for row in rows]
    Path(path).write_text("id,label\n" + "".join(lines), encoding="utf-8")


def test_labels_that_arrived_in_part_judge_the_rows_that_have_one(files, shiftcal, shiftcal_json):
    rows = np.random.default_rng(3).permutation(500)[:200]
    in_part("part.csv", rows)
    words = "evaluate unlabelled.npz --labels part.csv --labelled-only --resamples 0"
    document = shiftcal_json(words)
    assert (document["n"], document["n_unlabelled"]) == (200, 300)
    probs, labels, *_ = of()
    # the same rows in another order
    expected = sc.nll(probs[rows], labels[rows])
    assert document["metrics"]["nll"]["value"] == pytest.approx(expected, rel=1e-12)
    out = shiftcal(words).out
    assert out.startswith("unlabelled.npz: 200 of 500 rows (those with a label in part.csv), 6 cl")


KEYS = {
    "shiftcal",
    "command",
    "target",
    "n",
    "labelled",
    "labels",
    "n_sets",
    "n_bins",
    "binning",
    "level",
    "n_resamples",
    "seed",
    "methods",
    "missing",
    "warnings",
}
COMPARE_QUICK = "--resamples 20"
PAPER_ORDER = ["vanilla", "ts", "cpcs", "transcal", "sts", "sac"]


def test_all_methods_are_compared_where_files_allow_it(files, shiftcal_json, bank):
    words = "compare --target target.npz --source-train train.npz"
    document = shiftcal_json(words, bank, COMPARE_QUICK)
    assert set(document) == KEYS
    needs_model = {name for name in methods.names() if methods.get(name).uses_mixed}
    assert document["missing"].keys() == needs_model
    names = [m["method"] for m in document["methods"]]
    assert set(names) == set(methods.names()) - needs_model
    assert names[:6] == PAPER_ORDER


def test_the_numbers_are_those_of_the_python_interface(files, shiftcal_json, bank):
    document = shiftcal_json("compare --target target.npz", bank, COMPARE_QUICK)
    sets = sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"])
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


def test_the_table_names_its_units_and_what_is_missing(files, shiftcal, bank):
    done = shiftcal("compare --target target.npz", bank, COMPARE_QUICK)
    assert (done.status, done.err) == (0, "")
    assert "not percent" in done.out
    assert "95% interval" in done.out
    assert "missing: cpcs, transcal (needs features of the training samples (--source-" in done.out
    assert re.search(r"^sac +[123] of 3 ", done.out, re.MULTILINE)
    assert re.search(r"^sac chose set [123] \((clean|s1|s2)\)$", done.out, re.MULTILINE)


def test_without_labels_only_what_needs_none_is_shown(files, shiftcal, shiftcal_json, bank):
    done = shiftcal("compare --target unlabelled.npz", bank)
    assert done.status == 0
    assert "unlabelled.npz has no labels: only what needs none is shown" in done.out
    assert "ECE" not in done.out
    assert "and the target (in its scores file))" in done.out
    document = shiftcal_json("compare --target unlabelled.npz", bank)
    assert document["labelled"] is False
    assert all(m["metrics"] is None for m in document["methods"])


def test_a_target_of_one_row_has_no_interval(files, shiftcal, shiftcal_json, bank):
    target = sc.read_scores("target.npz")
    np.savez("one.npz", logits=target.values[:1], labels=target.labels[:1])
    document = shiftcal_json("compare --target one.npz", bank)
    assert {m["metrics"]["ece"]["low"] for m in document["methods"]} == {None}
    assert "No intervals: there is one row" in shiftcal("compare --target one.npz", bank).out


ESTIMATE_KEYS = {
    "shiftcal",
    "command",
    "bank",
    "surrogates",
    "target",
    "labels",
    "n",
    "n_sets",
    "level",
    "accuracy",
    "estimates",
    "missing",
    "warnings",
}


@pytest.fixture
def ladder(files):
    sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save("ladder")
    return sc.SurrogateBank.load("ladder")


def test_all_estimators_and_methods_stand_in_one_document(ladder, shiftcal_json):
    document = shiftcal_json("estimate ladder target.npz")
    assert set(document) == ESTIMATE_KEYS
    shown = {e["estimator"] for e in document["estimates"]} | set(document["missing"])
    by_method = {
        f"mean-confidence:{name}"
        for name in methods.names()
        if not methods.get(name).uses_features and not methods.get(name).uses_mixed
    } - {"mean-confidence:rehearsal"}  # "rehearsed" is its estimate
    assert shown == (set(estimates.names()) - {"mean-confidence"}) | by_method
    assert {"mean-confidence:sac", "mean-confidence:ts"} <= shown - set(document["missing"])


def test_the_numbers_are_those_of_the_python_interface_of_estimate(ladder, shiftcal_json):
    document = shiftcal_json(
        "estimate ladder target.npz --level 0.8 --estimator atc --estimator mean-confidence:sts"
    )
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


def test_the_table_has_intervals_and_with_labels_the_error(ladder, shiftcal):
    done = shiftcal("estimate ladder target.npz --estimator doc")
    assert (done.status, done.err) == (0, "")
    assert re.search(r"^doc +0\.\d{4} +0\.\d{4} to [01]\.\d{4} +[+-]0\.\d{4}$", done.out, re.M)
    assert "95% interval" in done.out
    assert re.search(r"^true accuracy, by the labels of target.npz: 0\.\d{4}$", done.out, re.M)


COMMANDS = {
    "compare": "compare --resamples 0",
    "estimate": "estimate --estimator atc",
    "report": "report --resamples 0 -o out.html",
}


@pytest.fixture
def ladder_of_named(files):
    sc.SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]).save("ladder")
    return files / "ladder"


def said(document):
    """A document without what differs from one run to the next."""
    document.pop("json_output", None)
    document.get("report", {}).pop("provenance", None)
    return json.dumps(document, sort_keys=True)


@pytest.mark.parametrize("command", ["compare", "estimate", "report"])
def test_places_and_options_say_the_same(ladder_of_named, shiftcal_json, command):
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


def test_fit_and_apply_take_both(ladder_of_named, shiftcal):
    assert shiftcal("fit ladder --method sac -o a.json").status == 0
    assert shiftcal("fit --bank ladder --method sac -o b.json").status == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert shiftcal("apply a.json target.npz -o a.npz").status == 0
    assert shiftcal("apply a.json --target target.npz -o b.npz").status == 0
    assert Path("a.npz").read_bytes() == Path("b.npz").read_bytes()


def test_the_folder_of_a_run_is_bank_target_and_features(ladder_of_named, shiftcal_json):
    Path("run").mkdir()
    shutil.move("ladder", "run/bank")
    shutil.copy("target.npz", "run/target.npz")
    shutil.copy("train.npz", "run/source-train.npz")
    document = shiftcal_json("compare run --resamples 0")
    assert document["target"] == str(Path("run", "target.npz"))
    assert {"cpcs", "transcal"} <= {each["method"] for each in document["methods"]}
    other = shiftcal_json("compare run unlabelled.npz --resamples 0 --method sac")
    assert other["target"] == "unlabelled.npz"


def test_labels_that_came_later_judge_a_comparison(ladder_of_named, shiftcal_json, shiftcal):
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
