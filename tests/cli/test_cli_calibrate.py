"""``shiftcal fit``, ``apply`` (also by groups) and ``export``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ladder_data import STEPS, draw
from small_networks import network, run, saved

from shiftcal import SAC, SurrogateBank, load, maps, read_scores, selective
from shiftcal.estimates import accuracy_interval
from shiftcal.grouping import GroupedCalibration
from shiftcal.numerics.softmax import p_max


def test_it_saves_what_the_python_interface_fits(files, shiftcal, bank):
    done = shiftcal("fit --method sac -o sac.json", bank)
    assert (done.status, done.err) == (0, "")
    expected = SAC().fit(SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"]))
    assert [m.temperature_ for m in load("sac.json").maps_] == [
        m.temperature_ for m in expected.maps_
    ]
    assert load("sac.json").class_names_[0] == "ant"
    for m in expected.maps_:
        assert f"{m.temperature_:.4f}" in done.out


def test_set_reaches_settings_that_have_no_option(files, shiftcal, bank):
    options = (
        "--source-train train.npz --set reading=free --set standardize=true --set max_iter=200"
    )
    assert shiftcal("fit --method transcal -o t.json", bank, options).status == 0
    transcal = load("t.json")
    assert (transcal.reading, transcal.standardize, transcal.max_iter) == ("free", True, 200)


def test_settings_of_the_map_reach_it(files, shiftcal, shiftcal_json, bank):
    words = "fit --method sac --map histogram --set map.n_bins=7 -o sac.json"
    assert shiftcal(words, bank).status == 0
    sac = load("sac.json")
    assert {m.n_bins for m in sac.maps_} == {7}
    expected = SAC(map=maps.get("histogram")(n_bins=7)).fit(
        SurrogateBank.from_files(["clean.npz", "s1.npz", "s2.npz"])
    )
    for ours, theirs in zip(sac.maps_, expected.maps_, strict=True):
        np.testing.assert_array_equal(ours.accuracy_, theirs.accuracy_)
    settings = shiftcal_json(words, bank)["settings"]
    assert (settings["map"], settings["map.n_bins"]) == ("histogram", 7)


@pytest.mark.parametrize("method", ["vanilla", "ts", "cpcs --source-train train.npz"])
def test_a_method_that_uses_the_first_set_only_says_so(files, shiftcal_json, bank, method):
    assert shiftcal_json("fit -o out.json --method", method, bank)["first_set_only"] is True


def test_the_kind_of_input_follows_from_the_files(files, shiftcal):
    rng = np.random.default_rng(0)
    np.savez("p.npz", probabilities=rng.dirichlet(np.ones(3), 60), labels=rng.integers(0, 3, 60))
    assert shiftcal("fit --method ts -o ts.json --surrogate p.npz").status == 0
    assert load("ts.json").input == "probabilities"


def test_a_warning_is_one_line_on_stderr_and_in_the_document(files, shiftcal, shiftcal_json):
    labels = np.arange(40) % 4
    np.savez("perfect.npz", logits=5.0 * np.eye(4)[labels], labels=labels)
    words = "fit --method ts -o ts.json --surrogate perfect.npz"
    done = shiftcal(words)
    assert done.status == 0
    assert done.err.startswith("warning: perfect: ")
    assert done.err.count("\n") == 1
    assert "FitWarning" not in done.err
    assert shiftcal_json(words)["warnings"] == [done.err[len("warning: ") :].strip()]


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


def kept_in(path):
    """The columns of an output, by name, and the classes."""
    if path.endswith(".npz"):
        with np.load(path) as out:
            named = {"predicted": out["classes"], "model_predicted": out["classes"]}
            return {name: named[name][x] if name in named else x for name, x in out.items()}
    table = pd.read_csv(path) if path.endswith(".csv") else pd.read_parquet(path)
    return {name: table[name].to_numpy() for name in table}


@pytest.mark.parametrize("suffix", ["npz", "csv", "parquet"])
def test_rows_that_reach_the_accuracy_are_marked(files, shiftcal, shiftcal_json, bank, suffix):
    shiftcal("fit --method realign -o realign.json", bank)
    words = f"apply realign.json target.npz -o out.{suffix} --target-accuracy 0.9"
    document = shiftcal_json(words)
    method, scores = load("realign.json"), read_scores("target.npz")
    method.adapt(scores)
    probs = method.predict_proba(scores)
    interval = accuracy_interval(method, scores)
    found = selective(probs.max(axis=1), 0.9, accuracy=interval)
    assert document["selective"] == found.to_dict()
    assert str(found) in shiftcal(words).out
    columns, names = kept_in(f"out.{suffix}"), np.array(scores.classes)
    assert columns["keep"].dtype == bool
    np.testing.assert_array_equal(columns["keep"], probs.max(axis=1) >= found.threshold)
    np.testing.assert_array_equal(columns["confidence"], probs.max(axis=1))
    np.testing.assert_array_equal(columns["model_confidence"], method.confidence(scores))
    np.testing.assert_array_equal(columns["predicted"], names[probs.argmax(axis=1)])
    np.testing.assert_array_equal(columns["model_predicted"], names[scores.values.argmax(axis=1)])
    np.testing.assert_array_equal(read_scores(f"out.{suffix}").values, probs)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_many_rows_are_written_in_order(files, shiftcal, shiftcal_json, bank, suffix):
    shiftcal("fit --method ts -o ts.json", bank)
    logits, labels = draw(450_000, STEPS[2], seed=8)
    np.savez("many.npz", logits=logits.astype(np.float32), labels=labels)
    words = f"apply ts.json many.npz -o out.{suffix} --target-accuracy 0.9"
    document = shiftcal_json(words)
    probs = load("ts.json").predict_proba(logits.astype(np.float32))
    out = read_scores(f"out.{suffix}")
    np.testing.assert_array_equal(out.values, probs)
    np.testing.assert_array_equal(out.labels, labels)
    columns, confidence = kept_in(f"out.{suffix}"), probs.max(axis=1)
    np.testing.assert_array_equal(columns["confidence"], confidence)
    assert columns["keep"].sum() == document["selective"]["n_kept"]
    assert document["mean_confidence"] == confidence.mean()


def test_an_accuracy_out_of_reach_keeps_nothing(fitted, shiftcal, shiftcal_json):
    words = "apply sac.json target.npz -o out.npz --target-accuracy 0.9999999"
    found = shiftcal_json(words)["selective"]
    assert (found["coverage"], found["n_kept"]) == (0, 0)
    assert found["threshold"] is found["accuracy"] is None
    done = shiftcal(words)
    assert "no rows can be kept at 100 % accuracy" in done.out
    assert "sac gives no interval of its accuracy" in done.err
    assert not kept_in("out.npz")["keep"].any()


def test_selective_needs_rows_and_one_threshold(statistics, refused):
    words = "apply sac.json target.npz -o out.npz --target-accuracy"
    assert "--target-accuracy must lie strictly between 0 and 1" in refused(words, "95")
    assert "one threshold" in refused(words, "0.9 --groups target.npz")
    assert "holds statistics" in refused("apply sac.json target.json --target-accuracy 0.9")


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


def test_statistics_of_a_target_are_enough_for_what_is_chosen(statistics, shiftcal_json):
    _, selection = expected()
    document = shiftcal_json("apply sac.json target.json")
    assert document["selection"]["index"] == selection.index
    assert document["selection"]["temperature"] == selection.temperature
    raw = p_max(read_scores("target.npz").values).mean()
    assert document["raw_mean_confidence"] == pytest.approx(raw, abs=1e-12)
    unknown = ("output", "mean_confidence", "n_predictions_changed")
    assert [document[key] for key in unknown] == [None] * 3


def test_the_adapted_method_can_be_kept(fitted, shiftcal):
    done = shiftcal("apply sac.json target.npz -o out.npz --save-adapted adapted.json")
    assert done.status == 0
    probs, selection = expected()
    kept = load("adapted.json")
    assert kept.selection_ == selection
    np.testing.assert_array_equal(kept.predict_proba(read_scores("target.npz").values), probs)
    assert load("sac.json").selection_ is None


SITES = ["north"] * 300 + ["south"] * 150 + ["west"] * 10


@pytest.fixture
def mixed(fitted):
    """``mixed.npz``, a target of three sites without ids, beside a fitted ``sac.json``."""
    sizes = ((300, STEPS[0], 1), (150, STEPS[4], 2), (10, STEPS[2], 3))
    np.savez("mixed.npz", logits=np.concatenate([draw(n, s, seed=i)[0] for n, s, i in sizes]))
    fitted.with_name("sites.txt").write_text("\n".join(SITES) + "\n", "utf-8")
    return fitted


def expected_groups(method="sac.json", target="mixed.npz", groups=SITES):
    grouped = GroupedCalibration(load(method))
    values = read_scores(target).values
    return grouped.adapt(values, groups), grouped.predict_proba(values, groups)


def write_groups(name):
    table = pd.DataFrame({"group": SITES, "camera": [f"{s}-1" for s in SITES]})
    match name.partition(":")[0]:
        case "sites.npy":
            np.save("sites.npy", np.array(SITES))
        case "sites.npz":
            np.savez("sites.npz", groups=np.array(SITES), camera=np.array(table["camera"], str))
        case "sites.csv":
            table.to_csv("sites.csv", index=False)
        case "sites.parquet":
            table.to_parquet("sites.parquet")


@pytest.mark.parametrize(
    "name",
    [
        "sites.txt",
        "sites.npy",
        "sites.npz:camera",
        "sites.csv",
        "sites.csv:camera",
        "sites.parquet",
    ],
)
def test_it_writes_what_the_python_interface_predicts_of_apply_groups(mixed, shiftcal, name):
    write_groups(name)
    done = shiftcal(f"apply sac.json mixed.npz --groups {name} -o out.npz")
    assert (done.status, done.err) == (0, "")
    _, probs = expected_groups()
    np.testing.assert_array_equal(read_scores("out.npz").values, probs)


def test_the_text_shows_every_group(mixed, shiftcal):
    chosen, probs = expected_groups()
    out = shiftcal("apply sac.json mixed.npz --groups sites.txt -o out.npz").out
    lines = out.splitlines()
    assert lines[0].split() == ["group", "rows", "own", "T", "weight", "T", "own", "set", "flags"]
    for line, (name, choice) in zip(lines[1:4], chosen.groups.items(), strict=True):
        assert line.split()[:2] == [name, str(choice.rows)]
    assert f"all rows: {chosen.everything}" in out
    assert f"mean confidence      {probs.max(axis=1).mean():.4f}\n" in out


def test_rows_are_joined_by_ids_where_both_files_have_them(mixed, shiftcal):
    logits = read_scores("mixed.npz").values
    ids = np.array([f"img {i}" for i in range(len(SITES))])
    np.savez("named.npz", logits=logits, ids=ids)
    table = pd.DataFrame({"id": ids, "group": SITES}).sample(frac=1, random_state=1)
    for name, write in (("s.csv", table.to_csv), ("s.parquet", table.to_parquet)):
        write(name, index=False)
        done = shiftcal(f"apply sac.json named.npz --groups {name} -o out.npz")
        assert (done.status, done.err) == (0, "")
        np.testing.assert_array_equal(read_scores("out.npz").values, expected_groups()[1])


EXPORT = "export sac.json --onnx net.onnx --target target.npz -o out.onnx"


@pytest.fixture
def net(fitted):
    """``net.onnx`` beside ``sac.json``, of the same six classes."""
    return saved(fitted.with_name("net.onnx"), network(k=6))


@pytest.fixture
def ts(files, shiftcal):
    """``ts.json``, which looks at no target, and ``net.onnx``."""
    assert shiftcal("fit --method ts --surrogate clean.npz -o ts.json").status == 0
    return saved(files / "net.onnx", network(k=6))


def adapted(target="target.npz"):
    method, scores = load("sac.json"), read_scores(target)
    method.adapt(scores.values)
    return method


def test_the_network_tells_what_the_python_interface_predicts(net, shiftcal):
    done = shiftcal(EXPORT)
    assert (done.status, done.err) == (0, "")
    found = run("out.onnx")
    wanted = adapted().predict_proba(found["logits"])
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["confidence"], wanted.max(axis=1), rtol=0, atol=1e-6)


def softmax_at_the_end(path):
    from onnx import helper

    nodes = [helper.make_node("Softmax", ["logits"], ["p"], axis=1)]
    saved(path, network(nodes, ["logits", "p"], k=6))


def test_which_output_and_what_it_holds_can_be_said(ts, shiftcal_json, refused):
    softmax_at_the_end(ts)
    command = "export ts.json --onnx net.onnx -o out.onnx"
    reason = refused(command)
    assert "several outputs of shape (n, 6): logits, p. Name the one" in reason
    document = shiftcal_json(command, "--output-name p")
    assert (document["source"], document["input"]) == ("logits", "logits")
    document = shiftcal_json(command, "--output-name p --input probabilities")
    assert (document["source"], document["input"]) == ("p", "probabilities")


def test_a_network_that_cannot_be_run_is_written_with_a_warning(ts, shiftcal_json, shiftcal):
    from onnx import TensorProto, helper
    from small_networks import tensor

    words = tensor("words", ["n"], TensorProto.STRING)
    nodes = [helper.make_node("Size", ["words"], ["size"])]
    saved(ts, network(nodes, k=6, more=[words]))
    done = shiftcal("export ts.json --onnx net.onnx -o out.onnx")
    assert done.status == 0
    assert "warning: the calibrated network was not run: " in done.err
    assert "checked      calibration\n" in done.out


def test_a_method_that_apply_kept_needs_no_target(net, shiftcal):
    shiftcal("apply sac.json target.npz -o out.npz --save-adapted adapted.json")
    assert shiftcal("export adapted.json --onnx net.onnx -o kept.onnx").status == 0
    assert shiftcal(EXPORT).status == 0
    assert Path("kept.onnx").read_bytes() == Path("out.onnx").read_bytes()
