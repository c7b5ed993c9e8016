"""Networks of all shapes: which output, what it holds, names, and what must stay as it was."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from map_data import draw, quiet_fit
from onnx import TensorProto, helper, numpy_helper
from small_networks import INPUTS, network, run, saved, tensor

from shiftcal import maps
from shiftcal.errors import FileError, InputError
from shiftcal.export import to_onnx


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def node(kind, given, made, **settings):
    return helper.make_node(kind, [given] if isinstance(given, str) else given, [made], **settings)


@pytest.fixture
def temperature(fit_map):
    return fit_map("temperature")


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
    np.testing.assert_allclose(found[made.probabilities], wanted, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found[made.confidence], wanted.max(axis=1), rtol=0, atol=1e-6)
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


def test_the_calibrated_output_can_be_left_out(temperature, tmp_path):
    features = node("Identity", "x", "features")
    model = network([features], ["features", "logits"], shapes={"features": ["n", 6]})
    made = calibrate(tmp_path, temperature, model, replace=True)
    assert made.outputs == ("features", "probabilities", "confidence")
    assert made.checked == "network"
    assert_calibrated(temperature, made, raw(tmp_path))


@pytest.mark.parametrize("opset", [9, 12, 17])
def test_versions_and_everything_else_are_kept(temperature, tmp_path, opset):
    model = network(opset=opset, domains=("", "my.domain"))
    model.producer_name, model.doc_string, model.model_version = "us", "a network", 7
    made = calibrate(tmp_path, temperature, model)
    after = onnx.load(made.path)
    assert made.opset == opset
    assert after.opset_import == model.opset_import
    assert after.ir_version == model.ir_version
    assert list(after.graph.node)[:1] == list(model.graph.node)
    assert list(after.graph.output)[:1] == list(model.graph.output)
    assert (after.producer_name, after.doc_string, after.model_version) == ("us", "a network", 7)
    kept = onnx.load(tmp_path / "net.onnx")
    assert kept == model


def test_initializers_of_the_first_files_are_inputs_too(temperature, tmp_path):
    given = tensor("w", [6, 5])
    made = calibrate(tmp_path, temperature, network(opset=9, ir_version=3, more=[given]))
    assert made.checked == "network"
    assert_calibrated(temperature, made, raw(tmp_path))


def test_older_operators_are_refused(temperature, tmp_path):
    with pytest.raises(FileError, match=r"operators of version 9 or later; it has 8.*converter"):
        calibrate(tmp_path, temperature, network(opset=8))


def test_a_network_without_operators_of_onnx_is_refused(temperature, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Net", ["x"], ["logits"], domain="my.domain")],
        "net",
        [tensor("x", ["n", 6])],
        [tensor("logits", ["n", 5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("my.domain", 1)])
    with pytest.raises(FileError, match=r"must import ONNX's own operators.*it has none"):
        calibrate(tmp_path, temperature, model)


def test_which_of_several_outputs_has_to_be_said(temperature, tmp_path):
    model = network([node("Neg", "logits", "other")], ["logits", "other"])
    with pytest.raises(
        InputError, match=r"several outputs of shape \(n, 5\): logits, other\. Name"
    ):
        calibrate(tmp_path, temperature, model)
    made = calibrate(tmp_path, temperature, model, output_name="other")
    assert made.source == "other"
    assert made.outputs == ("logits", "other", "probabilities", "confidence")
    assert_calibrated(temperature, made, -raw(tmp_path))


def test_of_several_outputs_one_is_of_the_right_shape(temperature, tmp_path):
    nodes = [node("Identity", "x", "features"), node("ArgMax", "logits", "label", axis=1)]
    shapes = {"features": ["n", 6], "label": tensor("label", ["n", 1], TensorProto.INT64)}
    made = calibrate(
        tmp_path, temperature, network(nodes, ["features", "label", "logits"], shapes=shapes)
    )
    assert made.source == "logits"
    assert_calibrated(temperature, made, raw(tmp_path))


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
    ("model", "came"),
    [
        (network(k=7), r"logits float \['n', 7\]"),
        (
            network(
                [node("Unsqueeze", "logits", "y", axes=[2])],
                ["y"],
                opset=11,
                shapes={"y": ["n", 5, 1]},
            ),
            r"y float \['n', 5, 1\]",
        ),
        (
            network(
                [node("Cast", "logits", "y", to=TensorProto.INT32)],
                ["y"],
                shapes={"y": tensor("y", ["n", 5], TensorProto.INT32)},
            ),
            r"y int32 \['n', 5\]",
        ),
        (
            network(
                [node("SequenceConstruct", "logits", "y")],
                ["y"],
                shapes={
                    "y": helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, ["n", 5])
                },
            ),
            "y sequence",
        ),
    ],
    ids=["classes", "rank", "integers", "sequence"],
)
def test_a_network_without_such_an_output_is_refused(temperature, tmp_path, model, came):
    with pytest.raises(InputError, match=rf"floats of shape \(n, 5\).*{came}.*of one model"):
        calibrate(tmp_path, temperature, model)


def test_a_dictionary_for_every_row_is_refused_with_what_leaves_it_out(temperature, tmp_path):
    """As skl2onnx writes classifiers, unless told."""
    zipped = helper.make_node(
        "ZipMap", ["logits"], ["y"], domain="ai.onnx.ml", classlabels_int64s=list(range(5))
    )
    rows = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    row = helper.make_map_type_proto(TensorProto.INT64, rows)
    value = helper.make_value_info("y", helper.make_sequence_type_proto(row))
    model = network([zipped], ["y"], shapes={"y": value}, domains=("", "ai.onnx.ml"))
    with pytest.raises(InputError, match=r'its outputs: y sequence.*options={"zipmap": False}'):
        calibrate(tmp_path, temperature, model)


@pytest.mark.parametrize("opset", [9, 12, 13, 18])
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_before_a_softmax_are_the_logits(temperature, tmp_path, opset, axis):
    settings = {} if axis is None else {"axis": axis if opset >= 11 else 1}
    model = network([node("Softmax", "logits", "p", **settings)], ["p"], opset=opset)
    made = calibrate(tmp_path, temperature, model)
    assert (made.source, made.input) == ("logits", "logits")
    assert made.checked == "network"
    z = INPUTS.astype(np.float32) @ numpy_helper.to_array(model.graph.initializer[0])
    assert_calibrated(temperature, made, z)


@pytest.mark.parametrize("between", [["Identity"], ["Cast"], ["Identity", "Cast", "Identity"]])
def test_a_softmax_is_found_behind_what_passes_it_on(temperature, tmp_path, between):
    nodes, last = [node("Softmax", "logits", "p0")], "p0"
    for place, kind in enumerate(between, start=1):
        settings = {"to": TensorProto.FLOAT} if kind == "Cast" else {}
        nodes.append(node(kind, last, f"p{place}", **settings))
        last = f"p{place}"
    made = calibrate(tmp_path, temperature, network(nodes, [last]))
    assert made.source == "logits"


def test_probabilities_are_calibrated_as_they_are_given(on_probabilities, tmp_path):
    made = calibrate(tmp_path, on_probabilities, network([node("Softmax", "logits", "p")], ["p"]))
    assert (made.source, made.input) == ("p", "probabilities")
    p = run(tmp_path / "net.onnx")["p"]
    found = run(made.path)["probabilities"]
    np.testing.assert_allclose(found, on_probabilities.predict_proba(p), rtol=0, atol=1e-6)


def test_logarithms_of_a_softmax_count_as_logits(temperature, on_probabilities, tmp_path):
    model = network([node("LogSoftmax", "logits", "log_p")], ["log_p"])
    for fitted in (temperature, on_probabilities):
        made = calibrate(tmp_path, fitted, model)
        assert (made.source, made.input) == ("log_p", "logits")
        assert_calibrated(fitted, made, run(tmp_path / "net.onnx")["log_p"])
    with pytest.raises(InputError, match="logarithm of a softmax, which counts as logits"):
        calibrate(tmp_path, temperature, model, input="probabilities")


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
    with pytest.raises(InputError, match=r'must hold probabilities of 5 classes.*input="logits"'):
        calibrate(tmp_path, on_probabilities, network())
    made = calibrate(tmp_path, on_probabilities, network(), input="logits")
    assert_calibrated(on_probabilities, made, raw(tmp_path))


def test_a_softmax_over_the_rows_is_none(on_probabilities, tmp_path):
    model = network([node("Softmax", "logits", "p", axis=0)], ["p"])
    with pytest.raises(InputError, match="every row of probabilities must sum to 1"):
        calibrate(tmp_path, on_probabilities, model)


def test_names_that_are_taken_are_left_alone(fit_map, tmp_path):
    fitted = fit_map("histogram")
    nodes = [
        node("Identity", "logits", "shiftcal/cast"),
        node("Identity", "shiftcal/cast", "confidence", name="shiftcal/Cast"),
        node("Identity", "confidence", "shiftcal/where_1"),
    ]
    model = network(nodes, ["logits", "confidence", "shiftcal/where_1"])
    made = calibrate(tmp_path, fitted, model, output_name="logits")
    assert (made.probabilities, made.confidence) == ("probabilities", "calibrated_confidence")
    found = assert_calibrated(fitted, made, raw(tmp_path))
    for name in ("confidence", "shiftcal/where_1"):
        np.testing.assert_array_equal(found[name], raw(tmp_path))
    names = [one.name for one in onnx.load(made.path).graph.node if one.name]
    assert len(set(names)) == len(names)


def branches():
    """A network with a branch, whose names are ``probabilities`` and one of ours."""
    inner = {}
    for name, kind in (("then_branch", "Identity"), ("else_branch", "Neg")):
        last = f"shiftcal/sub{'' if kind == 'Neg' else '_1'}"
        inner[name] = helper.make_graph(
            [
                node(kind, "logits", "probabilities" + name),
                node("Identity", "probabilities" + name, last),
            ],
            name,
            [],
            [tensor(last, ["n", 5])],
        )
    yes = tensor("yes", [], TensorProto.BOOL)
    return network([helper.make_node("If", ["yes"], ["z"], **inner)], ["z"], more=[yes])


def test_networks_with_branches_are_calibrated(fit_map, tmp_path):
    fitted = fit_map("vector")
    made = calibrate(tmp_path, fitted, branches())
    ours = {name for one in onnx.load(made.path).graph.node[2:] for name in one.output}
    assert ours
    assert ours.isdisjoint({"shiftcal/sub", "shiftcal/sub_1"})  # those of the branches
    for yes, sign in ((True, 1), (False, -1)):
        z = sign * (
            INPUTS.astype(np.float32) @ numpy_helper.to_array(branches().graph.initializer[0])
        )
        found = run(made.path, yes=np.array(yes))["probabilities"]
        np.testing.assert_allclose(found, fitted.predict_proba(z), rtol=0, atol=1e-5)


def test_networks_with_functions_are_calibrated(temperature, tmp_path):
    opsets = [helper.make_opsetid("", 17)]
    head = helper.make_function(
        "my.domain", "Head", ["a"], ["b"], [node("Softmax", "a", "b")], opsets
    )
    call = helper.make_node("Head", ["logits"], ["p"], domain="my.domain")
    model = network([call], ["p"], functions=[head], domains=("", "my.domain"))
    with pytest.raises(InputError, match='input="probabilities"'):
        calibrate(tmp_path, temperature, model)
    made = calibrate(tmp_path, temperature, model, input="probabilities")
    assert list(onnx.load(made.path).functions) == [head]
    assert_calibrated(temperature, made, np.log(run(tmp_path / "net.onnx")["p"]))


def test_a_network_is_not_calibrated_twice(temperature, tmp_path):
    made = calibrate(tmp_path, temperature, network(), replace=True)
    with pytest.raises(FileError, match="is calibrated by shiftcal already"):
        to_onnx(temperature, made.path, tmp_path / "twice.onnx")
