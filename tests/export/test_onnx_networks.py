"""Networks of all shapes and files: which output, what it holds, names, and the check."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from absent_package import hide
from map_data import draw_logits as draw
from map_data import quiet_fit
from onnx import TensorProto, helper, numpy_helper
from small_networks import INPUTS, network, run, saved, tensor

from shiftcal import maps
from shiftcal.errors import FileError, InputError, InputWarning, MissingExtra
from shiftcal.export import onnx as export_onnx
from shiftcal.export import to_onnx


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def node(kind, given, made, **settings):
    return helper.make_node(kind, [given] if isinstance(given, str) else given, [made], **settings)


@pytest.fixture
def temperature(fit_map):
    return fit_map("temperature")


@pytest.fixture
def net(tmp_path):
    return saved(tmp_path / "net.onnx", network())


@pytest.fixture(scope="module")
def on_probabilities():
    z, y = draw(1500, 5, temperature=1.8, seed=1)
    return quiet_fit(maps.get("temperature")(input="probabilities"), softmax(z), y)


def calibrate(folder, fitted, model, valid=True, **options):
    path = saved(folder / "net.onnx", model, valid)
    return to_onnx(fitted, path, folder / "out.onnx", **options)


def assert_calibrated(fitted, made, logits, inputs=INPUTS, **more):
    found = run(made.path, inputs=inputs, **more)
    wanted = fitted.apply_checked(logits)
    np.testing.assert_allclose(found[made.outputs[-2]], wanted, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found[made.outputs[-1]], wanted.max(axis=1), rtol=0, atol=1e-6)
    return found


def raw(folder, inputs=INPUTS):
    return run(folder / "net.onnx", ["logits"], inputs=inputs)["logits"]


def test_outputs_come_in_addition_and_the_first_stay(temperature, tmp_path):
    made = calibrate(tmp_path, temperature, network())
    assert made.outputs == ("logits", "probabilities", "confidence")
    found = assert_calibrated(temperature, made, raw(tmp_path))
    np.testing.assert_array_equal(found["logits"], raw(tmp_path))
    assert made.checked == "network"
    assert made.difference <= 1e-6


@pytest.mark.parametrize("opset", [13, 17])
def test_versions_and_everything_else_are_kept(temperature, tmp_path, opset):
    model = network(opset=opset, domains=("", "my.domain"))
    model.producer_name, model.doc_string, model.model_version = "us", "a network", 7
    made = calibrate(tmp_path, temperature, model)
    after = onnx.load(made.path)
    assert after.opset_import == model.opset_import
    assert after.ir_version == model.ir_version
    assert list(after.graph.node)[:1] == list(model.graph.node)
    assert list(after.graph.output)[:1] == list(model.graph.output)
    assert (after.producer_name, after.doc_string, after.model_version) == ("us", "a network", 7)
    kept = onnx.load(tmp_path / "net.onnx")
    assert kept == model


def shapeless(name):
    """An output whose type is known and nothing else; onnxruntime runs such files."""
    value = onnx.ValueInfoProto(name=name)
    value.type.tensor_type.elem_type = TensorProto.FLOAT
    return value


def test_shapes_that_are_not_said_are_inferred(temperature, tmp_path):
    bare = {name: shapeless(name) for name in ("features", "logits")}
    model = network([node("Identity", "x", "features")], list(bare), shapes=bare, rows=None)
    made = calibrate(tmp_path, temperature, model, valid=False)
    assert made.source == "logits"
    assert_calibrated(temperature, made, raw(tmp_path))


@pytest.mark.parametrize(
    ("nodes", "output", "came"),
    [
        ([], tensor("logits", ["n", 7]), r"%logits\[FLOAT, nx7\]"),
        ([node("Size", "logits", "y")], tensor("y", [], TensorProto.INT64), r"%y\[INT64, scalar\]"),
        (
            [node("Cast", "logits", "y", to=TensorProto.INT32)],
            tensor("y", ["n", 5], TensorProto.INT32),
            r"%y\[INT32, nx5\]",
        ),
    ],
    ids=["classes", "rank", "integers"],
)
def test_a_network_without_such_an_output_raises(temperature, tmp_path, nodes, output, came):
    model = network(nodes, [output.name], shapes={output.name: output}, k=7 if not nodes else 5)
    with pytest.raises(InputError, match=rf"floats of shape \(n, 5\).*{came}.*of one model"):
        calibrate(tmp_path, temperature, model)


@pytest.mark.parametrize("settings", [{}, {"axis": 1}, {"axis": -1}], ids=str)
def test_before_a_softmax_are_the_logits(temperature, tmp_path, settings):
    model = network([node("Softmax", "logits", "p", **settings)], ["p"])
    made = calibrate(tmp_path, temperature, model)
    assert (made.source, made.input) == ("logits", "logits")
    assert made.checked == "network"
    z = INPUTS.astype(np.float32) @ numpy_helper.to_array(model.graph.initializer[0])
    assert_calibrated(temperature, made, z)


def test_probabilities_are_calibrated_as_they_are_given(on_probabilities, tmp_path):
    made = calibrate(tmp_path, on_probabilities, network([node("Softmax", "logits", "p")], ["p"]))
    assert (made.source, made.input) == ("p", "probabilities")
    p = run(tmp_path / "net.onnx")["p"]
    found = run(made.path)["probabilities"]
    np.testing.assert_allclose(found, on_probabilities.predict_proba(p), rtol=0, atol=1e-6)


def by_hand():
    """Probabilities that no softmax node gives."""
    axes = numpy_helper.from_array(np.array([1]), "axes")
    nodes = [
        node("Exp", "logits", "e"),
        node("ReduceSum", ["e", "axes"], "s"),
        node("Div", ["e", "s"], "p"),
    ]
    return network(nodes, ["p"], constants=[axes])


def test_probabilities_that_no_softmax_gave_are_found_out_by_running(temperature, tmp_path):
    with pytest.raises(InputError, match=r"'p' of the network must hold logits.*input=.prob"):
        calibrate(tmp_path, temperature, by_hand())
    assert not (tmp_path / "out.onnx").exists()
    made = calibrate(tmp_path, temperature, by_hand(), input="probabilities")
    assert_calibrated(temperature, made, np.log(run(tmp_path / "net.onnx")["p"]))


def test_logits_for_a_calibration_of_probabilities_are_found_out_by_running(
    on_probabilities, tmp_path
):
    with pytest.raises(InputError, match=r'must hold probabilities: .*input="logits"'):
        calibrate(tmp_path, on_probabilities, network())
    made = calibrate(tmp_path, on_probabilities, network(), input="logits")
    assert_calibrated(on_probabilities, made, raw(tmp_path))


def test_names_that_are_taken_are_left_alone(fit_map, tmp_path):
    fitted = fit_map("dirichlet")
    nodes = [
        node("Identity", "logits", "shiftcal/cast"),
        node("Identity", "shiftcal/cast", "confidence", name="shiftcal/Cast"),
        node("Identity", "confidence", "shiftcal/where_1"),
    ]
    model = network(nodes, ["logits", "confidence", "shiftcal/where_1"])
    made = calibrate(tmp_path, fitted, model, output_name="logits")
    assert made.outputs[-2:] == ("probabilities", "calibrated_confidence")
    found = assert_calibrated(fitted, made, raw(tmp_path))
    for name in ("confidence", "shiftcal/where_1"):
        np.testing.assert_array_equal(found[name], raw(tmp_path))
    names = [one.name for one in onnx.load(made.path).graph.node if one.name]
    assert len(set(names)) == len(names)


def test_a_network_is_not_calibrated_twice(temperature, tmp_path):
    made = calibrate(tmp_path, temperature, network(), replace=True)
    with pytest.raises(FileError, match="is calibrated by shiftcal already"):
        to_onnx(temperature, made.path, tmp_path / "twice.onnx")


def external(path, location):
    """A network whose weights are in another file; they are returned too."""
    model = network()
    weight = model.graph.initializer[0]
    values = numpy_helper.to_array(weight)
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    return saved(path, model, valid=False), values.tobytes()


@pytest.mark.parametrize("name", ["net.onnx", "link.onnx"])
def test_the_network_itself_is_not_replaced(temperature, net, tmp_path, name):
    (tmp_path / "link.onnx").symlink_to(net)
    before = net.read_bytes()
    with pytest.raises(FileError, match="is read by the export and must not be replaced"):
        to_onnx(temperature, net, f"{tmp_path}/{name}")
    assert net.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"not a network", ""),
        (network().SerializeToString()[:-30], ""),
        (network(opset=12).SerializeToString(), "operators of version 13 or later; it has 12"),
    ],
    ids=["empty", "text", "cut", "old"],
)
def test_files_that_are_no_networks_raise(temperature, tmp_path, content, said):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(content)
    with pytest.raises(FileError, match=rf"bad\.onnx .*{said}"):
        to_onnx(temperature, bad, tmp_path / "out.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.onnx"]


def test_weights_in_other_files_stay_where_they_are(temperature, tmp_path):
    net, values = external(tmp_path / "net.onnx", "weights/first.bin")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "first.bin").write_bytes(values)
    made = to_onnx(temperature, net, tmp_path / "out.onnx")
    assert_calibrated(temperature, made, raw(tmp_path))
    (tmp_path / "other").mkdir()
    with pytest.raises(FileError, match=r"must be in the folder of .*net\.onnx, where its weigh"):
        to_onnx(temperature, net, tmp_path / "other" / "out.onnx")
    assert not list((tmp_path / "other").iterdir())
    with pytest.raises(FileError, match="is read by the export"):
        to_onnx(temperature, net, tmp_path / "weights" / "first.bin")


def test_a_calibration_that_is_off_is_not_written(temperature, net, tmp_path, monkeypatch):
    monkeypatch.setattr(
        export_onnx, "formula_of", lambda one: ("scaled", {"temperature": one.temperature_ * 1.001})
    )
    with pytest.raises(FileError, match=r"shiftcal's probabilities to 1e-06.*off, so nothing"):
        to_onnx(temperature, net, tmp_path / "out.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]
    made = to_onnx(temperature, net, tmp_path / "out.onnx", check=False)
    assert (made.checked, made.difference) == (None, None)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"y": INPUTS}, "check= must fit the network: .*'x'"),
        (INPUTS, "check= must fit the network: .*double"),
    ],
)
def test_inputs_can_be_given_and_must_fit(temperature, net, tmp_path, check, message):
    for given in (INPUTS.astype(np.float32), {"x": INPUTS.astype(np.float32)}):
        made = to_onnx(temperature, net, tmp_path / "out.onnx", check=given)
        assert made.checked == "network"
        assert 0 <= made.difference <= 1e-6
        made.path.unlink()
    with pytest.raises(InputError, match=message):
        to_onnx(temperature, net, tmp_path / "out.onnx", check=check)
    assert not (tmp_path / "out.onnx").exists()


def test_where_no_inputs_can_be_drawn_the_calibration_alone_is_run(temperature, tmp_path, capfd):
    nodes = [helper.make_node("Add", ["logits", "y"], ["z"])]  # 32 columns do not go with 5
    model = network(nodes, ["z"], more=[tensor("y", ["n", "m"])], shapes={"z": ["n", 5]})
    path = saved(tmp_path / "net.onnx", model)
    with pytest.warns(InputWarning, match="was not run: .*Pass inputs as check="):
        made = to_onnx(temperature, path, tmp_path / "out.onnx")
    assert made.checked == "calibration"
    assert made.difference <= 1e-6
    assert made.path.is_file()
    assert capfd.readouterr().err == ""  # onnxruntime has a log of its own


def test_without_onnxruntime_nothing_is_run(temperature, net, tmp_path, monkeypatch):
    hide(monkeypatch, "onnxruntime")
    made = to_onnx(temperature, net, tmp_path / "out.onnx")
    assert (made.checked, made.difference) == (None, None)
    with pytest.raises(MissingExtra, match=r"needs onnxruntime.*shiftcal\[onnx\]"):
        to_onnx(temperature, net, tmp_path / "out.onnx", check=INPUTS)
