"""``shiftcal apply``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shiftcal import load, methods, read_scores
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


def test_a_target_of_probabilities_gives_the_same_as_its_logits(fitted, shiftcal_json):
    target = read_scores("target.npz")
    np.savez("p.npz", probabilities=target.as_kind("probabilities").values)
    a = shiftcal_json("apply sac.json target.npz -o a.npz")
    b = shiftcal_json("apply sac.json p.npz -o b.npz")
    # logarithms of probabilities are logits up to a constant a row, and rounding
    np.testing.assert_allclose(
        read_scores("a.npz").values, read_scores("b.npz").values, rtol=0, atol=1e-12
    )
    assert a["selection"]["index"] == b["selection"]["index"]


def test_a_method_on_probabilities_takes_a_target_of_logits(files, shiftcal):
    clean, target = read_scores("clean.npz"), read_scores("target.npz")
    np.savez("p.npz", probabilities=clean.as_kind("probabilities").values, labels=clean.labels)
    assert shiftcal("fit --method ts --surrogate p.npz -o p.json").status == 0
    assert shiftcal("fit --method ts --surrogate clean.npz -o z.json").status == 0
    assert shiftcal("apply p.json target.npz -o p-out.npz").status == 0
    assert shiftcal("apply z.json target.npz -o z-out.npz").status == 0
    np.testing.assert_allclose(
        read_scores("p-out.npz").values, read_scores("z-out.npz").values, rtol=0, atol=1e-9
    )
    assert target.input == "logits"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "safetensors"])
def test_other_formats_can_be_written(fitted, shiftcal, suffix):
    assert shiftcal(f"apply sac.json target.npz -o out.{suffix}").status == 0
    np.testing.assert_array_equal(read_scores(f"out.{suffix}").values, expected()[0])


def test_a_method_with_features_reads_them_from_the_target(files, shiftcal, bank):
    words = "fit --method cpcs -o cpcs.json --source-train train.npz"
    assert shiftcal(words, bank).status == 0
    done = shiftcal("apply cpcs.json target.npz -o out.npz")
    assert done.status == 0
    assert "effective sample size" in done.out
    np.testing.assert_array_equal(read_scores("out.npz").values, expected("cpcs.json")[0])


def scores_file(name, *, k=6, classes=None, **others):
    logits = np.random.default_rng(1).standard_normal((30, k)) * 3
    extra = {} if classes is None else {"classes": np.array(classes)}
    np.savez(name, **{"logits": logits, **extra, **others})


def test_classes_in_another_order_are_refused(fitted, refused):
    scores_file("t.npz", classes=["ant", "cat", "bee", "dog", "elk", "fox"])
    reason = refused("apply sac.json t.npz -o out.npz")
    assert "the same in another order: column 1 is 'cat' here and 'bee' there" in reason


def test_a_target_without_features_is_refused_where_they_are_needed(files, shiftcal, refused, bank):
    shiftcal("fit --method cpcs -o cpcs.json --source-train train.npz", bank)
    reason = refused("apply cpcs.json unlabelled.npz -o out.npz")
    assert "cpcs needs features of the target (in its scores file)" in reason


def test_a_method_that_needs_mixed_images_is_refused_where_there_are_none(files, refused):
    clean = read_scores("clean.npz")
    methods.get("pseudocal")().fit(clean.logits(), clean.labels).save("pseudocal.json")
    reason = refused("apply pseudocal.json target.npz -o out.npz")
    assert "pseudocal needs the model run over mixed target images" in reason


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("sac.json target.npz -o target.npz", "target.npz is read by this command"),
        ("sac.json target.npz -o sac.json", "sac.json is read by this command"),
        ("sac.json target.npz -o none/out.npz", "there is no folder none"),
        ("sac.json target.npz -o out.txt", "must end in the suffix of its format"),
        ("sac.json target.npz -o out.npy", "must end in the suffix"),
        ("sac.json tarrget.npz -o out.npz", "Did you mean 'target.npz'?"),
        ("none.json target.npz -o out.npz", "none.json could not be read"),
        (
            "target.npz target.npz -o out.npz",
            "target.npz is not a saved shiftcal method",
        ),
        ("target.npz sac.json -o out.npz", "METHOD and TARGET look swapped: target.npz is named"),
        ("target.npz sac.json -o out.npz", "Say: shiftcal apply sac.json target.npz -o out.npz"),
        ("sac.json target.npz", "-o must name a file for the calibrated scores"),
        (
            "sac.json",
            "the target is missing. Name its scores file as TARGET, or give --target FILE",
        ),
        (
            "sac.json target.npz --target target.npz -o out.npz",
            "the target is given twice: target.npz and target.npz. Leave one out.",
        ),
    ],
)
def test_files_that_cannot_be_used_are_refused(fitted, files, refused, words, reason):
    before = {file: file.read_bytes() for file in files.iterdir()}
    assert reason in refused("apply", words)
    assert {file: file.read_bytes() for file in files.iterdir()} == before


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


def test_statistics_cannot_be_calibrated_row_by_row(statistics, refused):
    reason = refused("apply sac.json target.json -o out.npz")
    assert "rows are needed to write calibrated scores, and target.json holds statistics" in reason


def test_statistics_are_for_sac(statistics, shiftcal, refused):
    shiftcal("fit --method ts --surrogate clean.npz -o ts.json")
    assert "ts.json holds 'ts'" in refused("apply ts.json target.json")


def test_the_adapted_method_can_be_kept(fitted, shiftcal):
    done = shiftcal("apply sac.json target.npz -o out.npz --save-adapted adapted.json")
    assert done.status == 0
    assert done.out.endswith("adapted method written to adapted.json\n")
    probs, selection = expected()
    kept = load("adapted.json")
    assert kept.selection_ == selection
    np.testing.assert_array_equal(kept.predict_proba(read_scores("target.npz").values), probs)
    assert load("sac.json").selection_ is None


def test_an_adapted_method_replaces_no_input_and_is_not_of_groups(fitted, refused):
    assert "is read by this command" in refused(
        "apply sac.json target.npz -o out.npz --save-adapted sac.json"
    )
    assert not Path("out.npz").exists()
    Path("groups.txt").write_text("a\n" * 500)
    reason = refused(
        "apply sac.json target.npz -o out.npz --groups groups.txt --save-adapted a.json"
    )
    assert "--save-adapted writes one method" in reason
