"""``shiftcal export``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from small_networks import network, run, saved

from shiftcal import load, read_scores

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


def test_a_method_that_apply_kept_needs_no_target(net, shiftcal):
    shiftcal("apply sac.json target.npz -o out.npz --save-adapted adapted.json")
    assert shiftcal("export adapted.json --onnx net.onnx -o kept.onnx").status == 0
    assert shiftcal(SAC).status == 0
    assert Path("kept.onnx").read_bytes() == Path("out.onnx").read_bytes()
