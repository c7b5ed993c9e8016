"""``shiftcal compare``."""

from __future__ import annotations

import re

import numpy as np
import pytest

import shiftcal as sc
from shiftcal import methods

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
QUICK = "--resamples 20"
PAPER_ORDER = ["vanilla", "ts", "cpcs", "transcal", "sts", "sac"]


def test_all_methods_are_compared_where_files_allow_it(files, shiftcal_json, bank):
    words = "compare --target target.npz --source-train train.npz"
    document = shiftcal_json(words, bank, QUICK)
    assert set(document) == KEYS
    needs_model = {name for name in methods.names() if methods.get(name).uses_mixed}
    assert document["missing"].keys() == needs_model
    names = [m["method"] for m in document["methods"]]
    assert set(names) == set(methods.names()) - needs_model
    assert names[:6] == PAPER_ORDER


def test_the_numbers_are_those_of_the_python_interface(files, shiftcal_json, bank):
    document = shiftcal_json("compare --target target.npz", bank, QUICK)
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
    done = shiftcal("compare --target target.npz", bank, QUICK)
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
