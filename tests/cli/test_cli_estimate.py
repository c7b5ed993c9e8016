"""``shiftcal estimate``."""

from __future__ import annotations

import re

import pytest

import shiftcal as sc
from shiftcal import estimates, methods

KEYS = {
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
    assert set(document) == KEYS
    shown = {e["estimator"] for e in document["estimates"]} | set(document["missing"])
    by_method = {
        f"mean-confidence:{name}"
        for name in methods.names()
        if not methods.get(name).uses_features and not methods.get(name).uses_mixed
    } - {"mean-confidence:rehearsal"}  # "rehearsed" is its estimate
    assert shown == (set(estimates.names()) - {"mean-confidence"}) | by_method
    assert {"mean-confidence:sac", "mean-confidence:ts"} <= shown - set(document["missing"])


def test_the_numbers_are_those_of_the_python_interface(ladder, shiftcal_json):
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
