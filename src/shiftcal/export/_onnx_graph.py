"""The graph of a network with a calibration behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shiftcal._optional import require
from shiftcal.errors import FileError, InputError
from shiftcal.export._formula import Formula
from shiftcal.export._onnx_check import Names
from shiftcal.export._onnx_maps import calibrated, work_dtype
from shiftcal.export._onnx_network import (
    HALVES,
    Ending,
    Output,
    ending_of,
    new_names,
    opset_of,
)
from shiftcal.export._onnx_ops import Ops

# What a message of protobuf can be at most.
_LARGEST_FILE = 2**31 - 1
_PREFIX = "shiftcal"


@dataclass(frozen=True)
class Plan:
    """How a calibration is appended.

    Attributes:
        output: The output it belongs to.
        names: What it takes and gives.
        opset: Version of the operators.
        nodes: To be appended.
        out: Dtype of what it gives.
        k: Number of classes.
    """

    output: Output
    names: Names
    opset: int
    nodes: tuple[Any, ...]
    out: type[np.floating[Any]]
    k: int


def planned(
    network: Any, output: Output, formula: Formula, *, k: int, input: str | None, fitted_input: str
) -> Plan:
    """The nodes that calibrate an output of a network.

    Args:
        network: The network, which is left as it is.
        output: The output that holds scores.
        formula: What to compute.
        k: Number of classes.
        input: What the output holds, if the user said so.
        fitted_input: What the calibration was fitted on.

    Raises:
        InputError: If what was said contradicts the network.
    """
    opset = opset_of(network, "the network")
    ending = ending_of(network, output.name, opset=opset)
    source, kind = _source(ending, output, input=input, fitted_input=fitted_input)
    name = new_names(network)
    given = [_output_name(name, word) for word in ("probabilities", "confidence")]
    out = np.float64 if output.dtype == "DOUBLE" else np.float32
    # What was cast behind a softmax may have been of half precision before it.
    half = output.dtype in HALVES or (source != output.name and ending.is_cast)
    inner = work_dtype(formula, k, out, half=half)
    ops = Ops(opset, k, name=lambda word: name(f"{_PREFIX}/{word}"), dtype=inner)
    made = calibrated(ops, source, formula, kind=kind, out=out)
    ops.nodes += _ends(ops, made, given, name)
    return Plan(output, Names(source, kind, *given), opset, tuple(ops.nodes), out, k)


def _source(
    ending: Ending, output: Output, *, input: str | None, fitted_input: str
) -> tuple[str, str]:
    """What is calibrated and of which kind it is: what the calibration was fitted on, if there."""
    if ending.kind == "LogSoftmax":
        if input == "probabilities":
            raise InputError(
                f"the output {output.name!r} is the logarithm of a softmax, which counts as "
                'logits; got input="probabilities". Leave input out.'
            )
        return output.name, "logits"
    kind = input or fitted_input
    if ending.kind == "Softmax" and kind == "logits":
        return ending.given, kind
    return output.name, kind


def _output_name(name: Any, word: str) -> str:
    given: str = name(word)
    return given if given == word else name(f"calibrated_{word}")


def _ends(ops: Ops, made: str, given: list[str], name: Any) -> list[Any]:
    """The nodes that give the two outputs their names."""
    helper = require("onnx", extra="onnx", needed_by="export to ONNX").helper
    last = ops.reduce("ReduceMax", made, keepdims=False)
    return [
        helper.make_node("Identity", [inner], [outer], name(f"{_PREFIX}/Identity"))
        for inner, outer in zip((made, last), given, strict=True)
    ]


def appended(network: Any, plan: Plan, *, replace: bool, about: dict[str, str]) -> Any:
    """A copy of a network with the calibration behind it.

    Args:
        network: The network.
        plan: The calibration.
        replace: Whether the output that is calibrated is one no longer.
        about: What is said of the calibration in the file, by name.

    Raises:
        FileError: If it grows larger than a file of this kind can be.
    """
    onnx = require("onnx", extra="onnx", needed_by="export to ONNX")
    made = onnx.ModelProto()
    made.CopyFrom(network)
    graph = made.graph
    graph.node.extend(plan.nodes)
    if replace:
        kept = [value for value in graph.output if value.name != plan.output.name]
        del graph.output[:]
        graph.output.extend(kept)
    graph.output.extend(_values(onnx, plan))
    for name, text in about.items():
        made.metadata_props.add(key=f"{_PREFIX}.{name}", value=text)
    if made.ByteSize() > _LARGEST_FILE:
        raise FileError(
            f"an ONNX file must not be larger than {_LARGEST_FILE:,} bytes; with its calibration "
            f"this one has {made.ByteSize():,}. Save the network's weights as external data first."
        )
    return made


def alone(network: Any, plan: Plan) -> bytes:
    """The calibration as a network of its own, from the scores it is given."""
    onnx = require("onnx", extra="onnx", needed_by="export to ONNX")
    helper = onnx.helper
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(plan.out))
    given = helper.make_tensor_value_info(plan.names.source, kind, [None, plan.k])
    graph = helper.make_graph(list(plan.nodes), "calibration", [given], _values(onnx, plan))
    opsets = [helper.make_opsetid("", plan.opset)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=network.ir_version)
    return bytes(made.SerializeToString())


def with_source(made: Any, plan: Plan) -> bytes | None:
    """The network with what is calibrated as an output too; ``None`` if it is one already."""
    if plan.names.source in [value.name for value in made.graph.output]:
        return None
    onnx = require("onnx", extra="onnx", needed_by="export to ONNX")
    more = onnx.ModelProto()
    more.CopyFrom(made)
    more.graph.output.append(onnx.ValueInfoProto(name=plan.names.source))
    return bytes(more.SerializeToString())


def _values(onnx: Any, plan: Plan) -> list[Any]:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(plan.out))
    rows = plan.output.rows
    return [
        onnx.helper.make_tensor_value_info(plan.names.probabilities, kind, [rows, plan.k]),
        onnx.helper.make_tensor_value_info(plan.names.confidence, kind, [rows]),
    ]
