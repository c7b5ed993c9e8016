"""The comparison with shiftcal that an export makes before anything gets its name."""

from __future__ import annotations

import numpy as np
import pytest
from absent_package import hide
from onnx import TensorProto, helper
from small_networks import INPUTS, network, saved, tensor

from shiftcal.errors import FileError, InputError, InputWarning, MissingExtra
from shiftcal.export import onnx as export_onnx
from shiftcal.export import to_onnx
from shiftcal.export.formulas import Scaled


@pytest.fixture
def temperature(fit_map):
    return fit_map("temperature")


@pytest.fixture
def net(tmp_path):
    return saved(tmp_path / "net.onnx", network())


def test_a_calibration_that_is_off_is_not_written(temperature, net, tmp_path, monkeypatch):
    monkeypatch.setattr(
        export_onnx, "formula_of", lambda _: Scaled(temperature.temperature_ * 1.001)
    )
    with pytest.raises(FileError, match=r"shiftcal's probabilities to 1e-06.*off, so nothing"):
        to_onnx(temperature, net, tmp_path / "out.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]
    made = to_onnx(temperature, net, tmp_path / "out.onnx", check=False)
    assert (made.checked, made.difference) == (None, None)


@pytest.mark.parametrize("check", [INPUTS.astype(np.float32), {"x": INPUTS.astype(np.float32)}])
def test_inputs_can_be_given(temperature, net, tmp_path, check):
    made = to_onnx(temperature, net, tmp_path / "out.onnx", check=check)
    assert made.checked == "network"
    assert 0 <= made.difference <= 1e-6


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"y": INPUTS}, "check= must have an array for every input of the network, x; got y"),
        ({}, "every input of the network, x; got none"),
        (INPUTS, "does not run on the inputs of check=: .*double"),
        (INPUTS[:, :3].astype(np.float32), "does not run on the inputs of check="),
        ("yes", r"check must be True, False, an array .* or arrays by name \(x\); got str"),
        (None, r"check must be True, False, an array .*got NoneType"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(temperature, net, tmp_path, check, message):
    with pytest.raises(InputError, match=message):
        to_onnx(temperature, net, tmp_path / "out.onnx", check=check)
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "FLOAT16", "UINT8", "INT32", "INT64", "BOOL"])
def test_inputs_of_every_usual_type_are_drawn(temperature, tmp_path, kind):
    nodes = [
        helper.make_node("Cast", ["y"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["logits", "cast"], ["z"]),
    ]
    model = network(nodes, ["z"], more=[tensor("y", ["n", 1], getattr(TensorProto, kind))])
    path = saved(tmp_path / "net.onnx", model)
    assert to_onnx(temperature, path, tmp_path / "out.onnx").checked == "network"


def unusual(case):
    if case == "text":
        nodes = [helper.make_node("Size", ["y"], ["size"])]
        return network(nodes, ["logits"], more=[tensor("y", ["n"], TensorProto.STRING)])
    nodes = [helper.make_node("Add", ["logits", "y"], ["z"])]  # 32 columns do not go with 5
    return network(nodes, ["z"], more=[tensor("y", ["n", "m"])], shapes={"z": ["n", 5]})


@pytest.mark.parametrize(
    ("case", "reason"),
    [("text", r"inputs of type tensor\(string\) cannot be drawn"), ("width", "does not run on dr")],
)
def test_where_no_inputs_can_be_drawn_the_calibration_alone_is_run(
    temperature, tmp_path, case, reason, capfd
):
    path = saved(tmp_path / "net.onnx", unusual(case))
    with pytest.warns(InputWarning, match=rf"was not run: .*{reason}.*Pass inputs as che"):
        made = to_onnx(temperature, path, tmp_path / "out.onnx")
    assert made.checked == "calibration"
    assert made.difference <= 1e-6
    assert made.path.is_file()
    assert capfd.readouterr().err == ""  # onnxruntime has a log of its own


def test_a_network_that_onnxruntime_does_not_know_is_written_with_a_warning(temperature, tmp_path):
    call = helper.make_node("Head", ["logits"], ["z"], domain="my.domain")
    model = network([call], ["z"], domains=("", "my.domain"))
    path = saved(tmp_path / "net.onnx", model)
    with pytest.warns(InputWarning, match="was not run: onnxruntime does not load it"):
        made = to_onnx(temperature, path, tmp_path / "out.onnx")
    assert made.checked == "calibration"


def test_without_onnxruntime_nothing_is_run(temperature, net, tmp_path, monkeypatch):
    hide(monkeypatch, "onnxruntime")
    made = to_onnx(temperature, net, tmp_path / "out.onnx")
    assert (made.checked, made.difference) == (None, None)
    with pytest.raises(MissingExtra, match=r"needs onnxruntime.*shiftcal\[onnx\]"):
        to_onnx(temperature, net, tmp_path / "out.onnx", check=INPUTS)
