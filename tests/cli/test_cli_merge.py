"""``shiftcal merge``."""

from __future__ import annotations

import numpy as np
import pytest
from ladder_data import draw
from score_parts import write_parts

import shiftcal as sc
from shiftcal.scoring.statistics import ScoreStatistics

KEYS = {
    "shiftcal", "command", "output", "holds", "n_parts", "n_images", "n", "n_classes",
    "mean_confidence", "metrics", "warnings",
}  # fmt: skip


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    z, y = draw(300, 0.9, seed=8)
    write_parts(tmp_path, (100, 180), logits=z, labels=y)
    return z, y


def test_parts_become_one_file_that_evaluate_reads(parts, shiftcal, shiftcal_json):
    z, y = parts
    document = shiftcal_json("merge part-3.npz part-1.npz part-2.npz -o all.npz")
    assert set(document) == KEYS
    assert (document["holds"], document["n_parts"], document["n"]) == ("scores", 3, 300)
    merged = sc.read_scores("all.npz")
    assert np.array_equal(merged.values, z)
    assert np.array_equal(merged.labels, y)
    judged = shiftcal_json("evaluate all.npz --resamples 0")["metrics"]
    for name in ("accuracy", "ece", "nll", "brier"):
        assert document["metrics"][name] == pytest.approx(judged[name]["value"], abs=1e-6), name
    exact = sc.maps.Temperature().fit(z, y).temperature_
    assert document["metrics"]["temperature"] == pytest.approx(exact, rel=1e-7)
    assert document["metrics"]["temperature_status"] == "converged"


def test_statistics_are_written_for_a_json_name(parts, shiftcal, shiftcal_json):
    whole = ScoreStatistics.of_rows(*parts)
    names = "part-1.npz part-2.npz part-3.npz"
    assert shiftcal_json("merge", names, "-o all.json")["holds"] == "statistics"
    assert ScoreStatistics.read("all.json") == whole
    assert shiftcal("merge", names, "-o stats.json --statistics").status == 0
    assert ScoreStatistics.read("stats.json") == whole


def test_without_labels_nothing_is_judged(parts, tmp_path, shiftcal, shiftcal_json):
    write_parts(tmp_path, (100,), logits=parts[0])
    document = shiftcal_json("merge part-1.npz part-2.npz -o all.npz")
    assert document["metrics"] is None
    assert document["mean_confidence"] == pytest.approx(
        sc.Vanilla().fit(*parts).confidence(parts[0]).mean(), abs=1e-12
    )
    assert "accuracy" not in shiftcal("merge part-1.npz part-2.npz -o all.json").out
