"""Networks in half precision, which onnxruntime computes in float32 on the way to their outputs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import network, saved, tensor

from shiftcal import maps
from shiftcal.export import to_onnx

IN_HALF = {"dtype": np.float16}


def node(kind, given, made, **settings):
    return helper.make_node(kind, [given], [made], **settings)


def cast_network():
    """A softmax in half precision whose output is float32, as converters that keep types write."""
    nodes = [
        node("Softmax", "logits", "halves"),
        node("Cast", "halves", "p", to=TensorProto.FLOAT),
    ]
    return network(nodes, ["p"], shapes={"p": tensor("p", ["n", 5])}, **IN_HALF)


@pytest.mark.parametrize(
    "model",
    [
        network(**IN_HALF),
        network([node("Softmax", "logits", "p")], ["p"], **IN_HALF),
        network([node("LogSoftmax", "logits", "p")], ["p"], **IN_HALF),
        cast_network(),
    ],
    ids=["logits", "softmax", "log-softmax", "softmax and cast"],
)
@pytest.mark.parametrize("name", maps.names())
def test_what_is_calibrated_is_what_the_network_gives(name, model, fit_map, tmp_path):
    path = saved(tmp_path / "net.onnx", model)
    made = to_onnx(fit_map(name), path, tmp_path / "out.onnx")
    assert made.checked == "network"
    assert made.difference <= 1e-6


def test_probabilities_in_half_precision_are_calibrated(tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(5), 500)
    labels = np.array([rng.choice(5, p=row) for row in probs])
    fitted = maps.Temperature(input="probabilities").fit(probs, labels)
    model = network([node("Softmax", "logits", "p")], ["p"], **IN_HALF)
    made = to_onnx(fitted, saved(tmp_path / "net.onnx", model), tmp_path / "out.onnx")
    assert (made.source, made.checked) == ("p", "network")
