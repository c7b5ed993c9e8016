"""``shiftcal export``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from absent_package import hide
from small_networks import network, run, saved

from shiftcal import load, maps, methods, read_scores
from shiftcal.scores import model_digest_of_file

KEYS = {
    "shiftcal",
    "command",
    "method",
    "method_file",
    "model",
    "target",
    "output",
    "map",
    "temperature",
    "n_classes",
    "opset",
    "source",
    "input",
    "outputs",
    "probabilities",
    "confidence",
    "data_files",
    "checked",
    "difference",
    "digest",
    "selection",
    "warnings",
}
SAC = "export sac.json --onnx net.onnx --target target.npz -o out.onnx"


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
    done = shiftcal(SAC)
    assert (done.status, done.err) == (0, "")
    found = run("out.onnx")
    wanted = adapted().predict_proba(found["logits"])
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["confidence"], wanted.max(axis=1), rtol=0, atol=1e-6)


def test_it_says_what_was_chosen_and_what_was_checked(net, shiftcal):
    selection = adapted().selection_
    out = shiftcal(SAC).out
    assert f"{selection.index + 1} of 3 ({selection.set_name})" in out
    assert f"temperature  {selection.temperature:.3f}\n" in out
    assert "calibrated   logits (logits)\n" in out
    assert "outputs      logits, probabilities, confidence\n" in out
    assert "opset        17, as it was\n" in out
    assert "checked      the network, run by onnxruntime; largest difference " in out
    assert out.endswith("\nwritten to out.onnx\n")


def test_the_json_document(net, shiftcal_json):
    document = shiftcal_json(SAC)
    assert set(document) == KEYS
    selection = adapted().selection_
    assert document["temperature"] == selection.temperature
    assert document["selection"]["index"] == selection.index
    assert document["checked"] == "network"
    assert 0 <= document["difference"] <= 1e-6
    assert document["outputs"] == ["logits", "probabilities", "confidence"]
    told = {entry.key: entry.value for entry in onnx.load("out.onnx").metadata_props}
    assert told["shiftcal.digest"] == document["digest"]
    assert (document["model"], document["target"]) == ("net.onnx", "target.npz")


def test_the_target_needs_no_labels(net, shiftcal):
    assert shiftcal(SAC.replace("target.npz", "unlabelled.npz")).status == 0


def test_flags_are_printed_with_their_sentence(net, shiftcal):
    np.savez("flat.npz", logits=np.random.default_rng(0).standard_normal((300, 6)) / 100)
    out = shiftcal(SAC.replace("target.npz", "flat.npz")).out
    assert "flags        outside-range" in out
    assert "  outside-range: the target's mean confidence" in out


def test_a_method_saved_after_it_saw_a_target_needs_none(net, shiftcal):
    method = adapted()
    method.save("adapted.json")
    done = shiftcal("export adapted.json --onnx net.onnx -o out.onnx")
    assert done.status == 0
    assert f"temperature  {method.selection_.temperature:.3f}\n" in done.out


def test_a_target_that_is_named_counts_more_than_one_that_was_seen(net, shiftcal_json):
    method = adapted()
    before = method.selection_.index
    method.save("adapted.json")
    command = "export adapted.json --onnx net.onnx -o out.onnx --target clean.npz"
    assert shiftcal_json(command)["selection"]["index"] == 0 < before


def test_a_method_that_looks_at_no_target_needs_none(ts, shiftcal, shiftcal_json):
    document = shiftcal_json("export ts.json --onnx net.onnx -o out.onnx")
    assert document["selection"] is None
    assert document["temperature"] == load("ts.json").map_.temperature_
    assert "flags        none" in shiftcal("export ts.json --onnx net.onnx -o out.onnx").out


def test_a_saved_map_will_do(ts, shiftcal_json, refused):
    clean = read_scores("clean.npz")
    maps.get("isotonic")().fit(clean.values, clean.labels).save("map.json")
    document = shiftcal_json("export map.json --onnx net.onnx -o out.onnx")
    assert (document["method"], document["map"]) == ("isotonic", "isotonic")
    assert document["temperature"] is None
    reason = refused("export map.json --onnx net.onnx -o out.onnx --target target.npz")
    assert "map.json holds the map 'isotonic', which looks at no target" in reason


def test_the_uncalibrated_output_can_be_left_out(ts, shiftcal_json):
    document = shiftcal_json("export ts.json --onnx net.onnx -o out.onnx --replace")
    assert document["outputs"] == ["probabilities", "confidence"]


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
    assert "input must be" in refused(command, "--output-name p --input scores")


def test_weights_beside_the_network_are_named(ts, shiftcal):
    model = onnx.load("net.onnx")
    onnx.save(model, "big.onnx", save_as_external_data=True, location="big.bin", size_threshold=0)
    out = shiftcal("export ts.json --onnx big.onnx -o out.onnx").out
    assert out.endswith("written to out.onnx\nits weights are in big.bin in the same folder\n")


def test_without_onnxruntime_it_says_that_nothing_was_checked(ts, shiftcal, monkeypatch):
    hide(monkeypatch, "onnxruntime")
    out = shiftcal("export ts.json --onnx net.onnx -o out.onnx").out
    assert "checked      no: onnxruntime did not run it\n" in out


def test_without_onnx_the_extra_is_named(ts, refused, monkeypatch):
    hide(monkeypatch, "onnx")
    reason = refused("export ts.json --onnx net.onnx -o out.onnx")
    assert "export to ONNX needs onnx, which is not installed. Run: pip install" in reason


def test_a_network_that_cannot_be_run_is_written_with_a_warning(ts, shiftcal_json, shiftcal):
    from onnx import TensorProto, helper
    from small_networks import tensor

    words = tensor("words", ["n"], TensorProto.STRING)
    nodes = [helper.make_node("Size", ["words"], ["size"])]
    saved(ts, network(nodes, k=6, more=[words]))
    done = shiftcal("export ts.json --onnx net.onnx -o out.onnx")
    assert done.status == 0
    assert "warning: the calibrated network was not run: it does not run on its inputs" in done.err
    assert "checked      the calibration alone, run by onnxruntime; largest diff" in done.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("sac.json --onnx net.onnx -o out.onnx", "sac.json holds 'sac', which has to look at a t"),
        ("sac.json --onnx net.onnx -o out.onnx", "Name its scores: --target SCORES."),
        ("sac.json --onnx net.onnx -o net.onnx", "net.onnx is read by this command"),
        ("sac.json --onnx net.onnx -o sac.json", "sac.json is read by this command"),
        ("sac.json --onnx net.onnx -o out.json", "must end in .onnx"),
        ("sac.json --onnx net.onnx -o none/out.onnx", "there is no folder none"),
        ("sac.json --onnx net.onnx", "missing option '--output'"),
        ("sac.json -o out.onnx", "missing option '--onnx'"),
        ("none.json --onnx net.onnx -o out.onnx", "none.json could not be read"),
        ("net.onnx --onnx net.onnx -o out.onnx", "net.onnx is not a saved shiftcal method"),
        ("target.npz --onnx net.onnx -o out.onnx", "target.npz is not a saved shiftcal method"),
        (f"{SAC[7:]} --output-name p", "net.onnx has no output 'p'. Its outputs: logits float"),
        (SAC[7:].replace("net.onnx", "none.onnx"), "none.onnx must be an ONNX file; there is no"),
        (SAC[7:].replace("net.onnx", "target.npz"), "must be an ONNX file; it is damaged or some"),
        (SAC[7:].replace("target.npz", "tarrget.npz"), "Did you mean 'target.npz'?"),
    ],
)
def test_files_that_cannot_be_used_are_refused(net, files, refused, words, reason):
    before = {file: file.read_bytes() for file in files.iterdir()}
    assert reason in refused("export", words)
    assert {file: file.read_bytes() for file in files.iterdir()} == before


def test_a_network_of_other_classes_is_refused(fitted, refused):
    saved(fitted.with_name("net.onnx"), network(k=4))
    assert "must be floats of shape (n, 6)" in refused(SAC)


def test_a_target_of_other_classes_is_refused(net, refused):
    np.savez("t.npz", logits=np.random.default_rng(0).standard_normal((30, 5)))
    assert "they have 6, and this one has 5" in refused(SAC.replace("target.npz", "t.npz"))


def test_a_target_scored_by_another_model_is_warned_of(net, shiftcal):
    for name in ("same", "other"):
        origin = json.dumps({"model": {"fingerprint": name, "preprocessing": {"crop": 224}}})
        np.savez(f"{name}.npz", origin=np.array(origin), **np.load("target.npz"))
    method = load("sac.json")
    method.model_ = model_digest_of_file(Path("same.npz"))
    method.save("sac.json")
    assert shiftcal(SAC.replace("target.npz", "same.npz")).err == ""
    done = shiftcal(SAC.replace("target.npz", "other.npz"))
    assert done.status == 0
    assert "other.npz was scored by another model" in done.err


def test_a_target_that_is_not_finite_is_refused_with_its_name(net, refused):
    np.savez("t.npz", logits=np.full((30, 6), np.nan))
    assert "t.npz: logits must be finite" in refused(SAC.replace("target.npz", "t.npz"))


def test_an_estimator_of_accuracy_calibrates_nothing(ts, refused):
    from shiftcal import estimates

    clean = read_scores("clean.npz")
    estimates.get("doc")().fit(clean.values, clean.labels).save("doc.json")
    reason = refused("export doc.json --onnx net.onnx -o out.onnx")
    assert "doc.json holds the accuracy-estimator 'doc', which calibrates nothing" in reason


def test_a_method_that_needs_mixed_images_is_refused(ts, refused):
    clean = read_scores("clean.npz")
    methods.get("pseudocal")().fit(clean.logits(), clean.labels).save("pseudocal.json")
    command = "export pseudocal.json --onnx net.onnx -o out.onnx --target target.npz"
    assert "pseudocal needs the model run over mixed target images" in refused(command)


def test_a_method_with_features_takes_them_from_the_target(net, shiftcal, bank):
    words = "fit --method cpcs -o cpcs.json --source-train train.npz"
    assert shiftcal(words, bank).status == 0
    done = shiftcal("export cpcs.json --onnx net.onnx -o out.onnx --target target.npz")
    assert done.status == 0


def test_ctrl_c_leaves_nothing_behind(ts, files, shiftcal, monkeypatch):
    from shiftcal.export import onnx as export_onnx

    def interrupts(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(export_onnx, "_checked", interrupts)
    before = sorted(file.name for file in files.iterdir())
    done = shiftcal("export ts.json --onnx net.onnx -o out.onnx")
    assert done.status == 130
    assert sorted(file.name for file in files.iterdir()) == before


def test_a_method_that_apply_kept_needs_no_target(net, shiftcal):
    shiftcal("apply sac.json target.npz -o out.npz --save-adapted adapted.json")
    assert shiftcal("export adapted.json --onnx net.onnx -o kept.onnx").status == 0
    assert shiftcal(SAC).status == 0
    assert Path("kept.onnx").read_bytes() == Path("out.onnx").read_bytes()
