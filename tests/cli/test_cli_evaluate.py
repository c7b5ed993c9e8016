"""``shiftcal evaluate``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shiftcal as sc
from shiftcal import metrics

KEYS = {
    "shiftcal",
    "command",
    "scores",
    "labels",
    "n",
    "n_unlabelled",
    "n_classes",
    "input",
    "n_bins",
    "binning",
    "level",
    "n_resamples",
    "seed",
    "mean_confidence",
    "metrics",
    "bins",
    "gate",
    "warnings",
}
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


def test_the_json_document(files, shiftcal_json):
    document = shiftcal_json("evaluate target.npz", QUICK)
    assert set(document) == KEYS
    assert list(document["metrics"]) == ["accuracy", "ece", "nll", "brier"]
    assert set(document["metrics"]["ece"]) == {"value", "low", "high"}
    assert document["mean_confidence"] == pytest.approx(of()[2].mean(), rel=1e-12)
    assert document["gate"] is None


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
