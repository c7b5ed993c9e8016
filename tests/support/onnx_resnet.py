"""ONNX files written node by node: a ResNet-20 from its weights, and small ones to go wrong."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper


class _Graph:
    """Nodes and weights in the order they are added; every node has one output."""

    def __init__(self, weights):
        self.nodes, self.constants, self.weights = [], {}, weights

    def const(self, name, value):
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def add(self, kind, *inputs, **settings):
        output = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **settings))
        return output

    def conv(self, x, name, bn, stride=1):
        weight = self.const(f"{name}.weight", self.weights[f"{name}.weight"])
        y = self.add("Conv", x, weight, pads=[1] * 4, strides=[stride] * 2)
        parts = [f"{bn}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
        named = [self.const(part, self.weights[part]) for part in parts]
        return self.add("BatchNormalization", y, *named, epsilon=1e-5)


def _block(graph, x, name, grows):
    y = graph.add("Relu", graph.conv(x, f"{name}.conv1", f"{name}.bn1", 2 if grows else 1))
    y = graph.conv(y, f"{name}.conv2", f"{name}.bn2")
    if grows:
        whole = np.iinfo(np.int64).max
        ends = [
            graph.const(f"{name}.{part}", np.array(values, np.int64))
            for part, values in (
                ("starts", [0, 0]),
                ("ends", [whole, whole]),
                ("axes", [2, 3]),
                ("steps", [2, 2]),
            )
        ]
        half = graph.weights[f"{name}.conv1.weight"].shape[1] // 2
        pads = graph.const(f"{name}.pads", np.array([0, half, 0, 0, 0, half, 0, 0], np.int64))
        x = graph.add("Pad", graph.add("Slice", x, *ends), pads)
    return graph.add("Relu", graph.add("Add", y, x))


def resnet20_onnx(weights, batch="n"):
    """The file's bytes. ``weights``: name -> array, as in the published file."""
    graph = _Graph(weights)
    x = graph.add("Relu", graph.conv("images", "conv1", "bn1"))
    for stage in (1, 2, 3):
        for block in range(3):
            x = _block(graph, x, f"layer{stage}.{block}", stage > 1 and block == 0)
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x))
    linear = [
        graph.const(f"linear.{part}", weights[f"linear.{part}"]) for part in ("weight", "bias")
    ]
    graph.nodes.append(helper.make_node("Gemm", [x, *linear], ["logits"], transB=1))
    return _file(graph.nodes, [batch, 3, 32, 32], list(graph.constants.values()))


def mean_colour_onnx(shape, kind=TensorProto.FLOAT):
    """A file whose three logits are the mean of each channel, for input of that shape."""
    axes = list(range(2, len(shape))) if shape[1] in (1, 3, "c") else [1, 2]
    nodes = [
        helper.make_node("Cast", ["images"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["x"], ["logits"], axes=axes, keepdims=0),
    ]
    return _file(nodes, shape, [], kind)


def _file(nodes, shape, constants, kind=TensorProto.FLOAT):
    images = helper.make_tensor_value_info("images", kind, shape)
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], None])
    graph = helper.make_graph(nodes, "net", [images], [logits], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model)
    return model.SerializeToString()
