"""Small ONNX networks written node by node, for what export has to put up with."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WIDTH = 6


def _newest():
    """The newest version of the operators that both packages know."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for opset in range(onnx.defs.onnx_opset_version(), 18, -1):
        node = helper.make_node("Identity", ["x"], ["y"])
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
        graph = helper.make_graph([node], "net", values[:1], values[1:])
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), options)
        except Exception:
            continue
        return opset
    raise AssertionError


NEWEST = _newest()
INPUTS = np.random.default_rng(8).standard_normal((40, WIDTH))


def weights(k, spread=2.0):
    return spread * np.random.default_rng(3).standard_normal((WIDTH, k))


def network(
    nodes=(),
    outputs=("logits",),
    *,
    k=5,
    opset=17,
    dtype=np.float32,
    rows="n",
    shapes=None,
    more=(),
    constants=(),
    domains=("",),
):
    """``logits = x @ w``, and what else is given.

    Args:
        nodes: After the first, whose output is ``logits``.
        outputs: Names, of which those in ``shapes`` have the shape given there, or none.
        k: Number of classes.
        opset: Version of the operators.
        dtype: Of inputs, weights and outputs.
        rows: First dimension.
        shapes: Name of an output -> its shape, or a whole ValueInfoProto.
        more: Further inputs, as ValueInfoProto.
        constants: Further initializers.
        domains: Of operators.
    """
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    first = helper.make_node("MatMul", ["x", "w"], ["logits"])
    given = {}
    for name in outputs:
        shape = (shapes or {}).get(name, [rows, k])
        made = isinstance(shape, onnx.ValueInfoProto)
        given[name] = shape if made else helper.make_tensor_value_info(name, kind, shape)
    graph = helper.make_graph(
        [first, *nodes],
        "net",
        [helper.make_tensor_value_info("x", kind, [rows, WIDTH]), *more],
        list(given.values()),
        [numpy_helper.from_array(weights(k).astype(dtype), "w"), *constants],
    )
    return helper.make_model(
        graph,
        opset_imports=[
            helper.make_opsetid(name, opset if name in ("", "ai.onnx") else 1) for name in domains
        ],
        ir_version=8 if opset < 20 else 10,
    )


def saved(path, model, valid=True):
    if valid:
        onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def run(path, wanted=None, inputs=INPUTS, dtype=np.float32, **more):
    """Outputs by name, as onnxruntime computes them."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options)
    names = wanted or [one.name for one in session.get_outputs()]
    feed = {"x": np.asarray(inputs, dtype), **more}
    return dict(zip(names, session.run(names, feed), strict=True))


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)
