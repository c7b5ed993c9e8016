"""``shiftcal apply``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shiftcal import load, read_scores
from shiftcal.numerics.softmax import p_max

KEYS = {
    "shiftcal",
    "command",
    "method",
    "method_file",
    "target",
    "output",
    "adapted",
    "n",
    "mean_confidence",
    "raw_mean_confidence",
    "n_predictions_changed",
    "selection",
    "groups",
    "warnings",
}


def expected(path="sac.json", target="target.npz"):
    method, scores = load(path), read_scores(target)
    selection = method.adapt(scores.values, scores.features)
    return method.predict_proba(scores.values), selection


def test_it_writes_what_the_python_interface_predicts(fitted, shiftcal):
    done = shiftcal("apply sac.json target.npz -o out.npz")
    assert (done.status, done.err) == (0, "")
    probs, _ = expected()
    with np.load("out.npz") as out:
        np.testing.assert_array_equal(out["probabilities"], probs)
        np.testing.assert_array_equal(out["confidence"], probs.max(axis=1))
        np.testing.assert_array_equal(out["predicted"], probs.argmax(axis=1))
        assert out["classes"][0] == "ant"
        assert out["ids"][7] == "row 7"
        np.testing.assert_array_equal(out["labels"], read_scores("target.npz").labels)
        assert "features" not in out


def test_the_json_document(fitted, shiftcal_json):
    document = shiftcal_json("apply sac.json target.npz -o out.npz")
    assert set(document) == KEYS
    probs, selection = expected()
    assert document["mean_confidence"] == pytest.approx(probs.max(axis=1).mean(), rel=1e-12)
    assert document["selection"]["index"] == selection.index
    assert document["selection"]["distances"] == list(selection.distances)
    assert document["n_predictions_changed"] == 0


def test_a_method_with_features_reads_them_from_the_target(files, shiftcal, bank):
    words = "fit --method cpcs -o cpcs.json --source-train train.npz"
    assert shiftcal(words, bank).status == 0
    done = shiftcal("apply cpcs.json target.npz -o out.npz")
    assert done.status == 0
    assert "effective sample size" in done.out
    np.testing.assert_array_equal(read_scores("out.npz").values, expected("cpcs.json")[0])


def scored_by(path, fingerprint):
    """The target once more, as a file that says which model it is of."""
    with np.load("target.npz") as target:
        arrays = dict(target)
    origin = {"model": {"fingerprint": fingerprint, "preprocessing": {"crop": 224}}}
    np.savez(path, origin=np.array(json.dumps(origin)), **arrays)


def test_scores_of_another_model_are_warned_of(fitted, shiftcal):
    from shiftcal.scores import model_digest_of_file

    scored_by("same.npz", "1234")
    scored_by("other.npz", "5678")
    method = load("sac.json")
    method.model_ = model_digest_of_file(Path("same.npz"))
    method.save("sac.json")
    assert load("sac.json").model_ == method.model_ is not None
    assert shiftcal("apply sac.json same.npz -o out.npz").err == ""
    assert shiftcal("apply sac.json target.npz -o out.npz").err == ""
    done = shiftcal("apply sac.json other.npz -o out.npz")
    assert done.status == 0
    assert "other.npz was scored by another model, or with another preprocessing" in done.err


@pytest.fixture
def statistics(fitted):
    """``target.json``, the statistics of the target."""
    from shiftcal.scoring.statistics import ScoreStatistics

    ScoreStatistics.of(read_scores("target.npz")).write("target.json")


def test_statistics_of_a_target_are_enough_for_what_is_chosen(statistics, shiftcal, shiftcal_json):
    _, selection = expected()
    document = shiftcal_json("apply sac.json target.json")
    assert set(document) == KEYS
    assert document["selection"]["index"] == selection.index
    assert document["selection"]["temperature"] == selection.temperature
    assert [flag["code"] for flag in document["selection"]["flags"]] == [
        flag.code for flag in selection.flags
    ]
    raw = p_max(read_scores("target.npz").values).mean()
    assert document["raw_mean_confidence"] == pytest.approx(raw, abs=1e-12)
    unknown = ("output", "mean_confidence", "n_predictions_changed")
    assert [document[key] for key in unknown] == [None] * 3
    out = shiftcal("apply sac.json target.json").out
    assert f"{selection.index + 1} of 3 ({selection.set_name})" in out
    assert f"temperature      {selection.temperature:.3f}\n" in out
    assert f"mean confidence  {raw:.4f} before\n" in out
    assert out.endswith("500 rows known by statistics\n")


def test_the_adapted_method_can_be_kept(fitted, shiftcal):
    done = shiftcal("apply sac.json target.npz -o out.npz --save-adapted adapted.json")
    assert done.status == 0
    assert done.out.endswith("adapted method written to adapted.json\n")
    probs, selection = expected()
    kept = load("adapted.json")
    assert kept.selection_ == selection
    np.testing.assert_array_equal(kept.predict_proba(read_scores("target.npz").values), probs)
    assert load("sac.json").selection_ is None
