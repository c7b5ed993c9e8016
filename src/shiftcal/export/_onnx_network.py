"""An ONNX network as it was given: its outputs, its names, and what it ends in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from shiftcal._optional import require
from shiftcal.errors import FileError, InputError, UnknownName
from shiftcal.export._onnx_ops import OLDEST_OPSET

# Nodes that give what they are given.
_PASSING = ("Identity", "Cast")
HALVES = ("FLOAT16", "BFLOAT16")
_FLOATS = {"FLOAT", "DOUBLE", *HALVES}
_ZIPPED = (
    "Its ZipMap makes a dictionary of every row; skl2onnx leaves that out with "
    'options={"zipmap": False}.'
)


class Output(NamedTuple):
    """An output that may hold scores.

    Attributes:
        name: Its name.
        dtype: Name of its type in ONNX, such as ``FLOAT``.
        rows: Its first dimension: a number, a name, or ``None`` if nothing is said.
        columns: Its second, if it is a number.
    """

    name: str
    dtype: str
    rows: int | str | None
    columns: int | None


class Ending(NamedTuple):
    """What stands before an output.

    Attributes:
        kind: ``"Softmax"``, ``"LogSoftmax"``, or empty for anything else.
        given: Name of what that is given.
        is_cast: Whether it is cast before it becomes the output.
    """

    kind: str = ""
    given: str = ""
    is_cast: bool = False


def opset_of(network: Any, path: object) -> int:
    """Version of ONNX's own operators in a network.

    Raises:
        FileError: If it is too old, or the network has none of them.
    """
    own = [one.version for one in network.opset_import if one.domain in ("", "ai.onnx")]
    if not own:
        raise FileError(
            f"{path} must import ONNX's own operators, of version {OLDEST_OPSET} or later; it "
            "imports none. Add them to its opset_import."
        )
    if own[0] < OLDEST_OPSET:
        raise FileError(
            f"{path} must have operators of version {OLDEST_OPSET} or later; it has {own[0]}. "
            "onnx.version_converter makes it newer."
        )
    return int(own[0])


def choose_output(network: Any, *, k: int, name: str | None, path: object) -> Output:
    """The output that holds scores of ``k`` classes.

    Args:
        network: The network.
        k: Number of classes of the calibration.
        name: Which output; ``None`` takes the only one that may be it.
        path: The file, for messages.

    Raises:
        InputError: If there is none, or there are several, or the one named is not of this kind.
    """
    every = list(_typed(network))
    told = ", ".join(text for _, _, text in every) or "none"
    if name is not None:
        if name not in [called for called, _, _ in every]:
            raise UnknownName(f"{path} has no output {name!r}. Its outputs: {told}.")
        every = [each for each in every if each[0] == name]
    fitting = [found for _, found, _ in every if found is not None and found.columns in (k, None)]
    sure = [found for found in fitting if found.columns == k]
    best = sure or fitting
    if len(best) == 1:
        return best[0]
    if not best:
        wrong = f"output {every[0][2]}" if name is not None and every else f"its outputs: {told}"
        zipped = any(node.op_type == "ZipMap" for node in network.graph.node)
        raise InputError(
            f"the output that is calibrated must be floats of shape (n, {k}), a column for each "
            f"class of the calibration; {path} has none: {wrong}. "
            + (_ZIPPED if zipped else "Both must be of one model.")
        )
    raise InputError(
        f"{path} has several outputs of shape (n, {k}): "
        f"{', '.join(found.name for found in best)}. Say which holds the scores: output_name= in "
        "Python, --output-name on the command line."
    )


def _typed(network: Any) -> Iterator[tuple[str, Output | None, str]]:
    """The name of every output, ``None`` if it cannot hold scores, and what it is in words."""
    onnx = require("onnx", extra="onnx", needed_by="export to ONNX")
    inferred = {value.name: value for value in _inferred(network)}
    for declared in network.graph.output:
        value = inferred.get(declared.name, declared)
        kind = value.type.WhichOneof("value") or "tensor_type"
        if kind != "tensor_type":
            yield declared.name, None, f"{declared.name} {kind.removesuffix('_type')}"
            continue
        tensor = value.type.tensor_type
        dtype = onnx.TensorProto.DataType.Name(tensor.elem_type)
        dims = [_dim(dim) for dim in tensor.shape.dim] if tensor.HasField("shape") else None
        shape = "?" if dims is None else [("?" if dim is None else dim) for dim in dims]
        text = f"{declared.name} {dtype.lower()} {shape}"
        fits = dims is None or len(dims) == 2
        if dtype not in _FLOATS or not fits:
            yield declared.name, None, text
            continue
        rows, columns = dims if dims is not None else (None, None)
        width = columns if isinstance(columns, int) else None
        yield declared.name, Output(declared.name, dtype, rows, width), text


def _inferred(network: Any) -> list[Any]:
    """The outputs with all that can be known of their shapes."""
    onnx = require("onnx", extra="onnx", needed_by="export to ONNX")
    try:
        return list(onnx.shape_inference.infer_shapes(network).graph.output)
    except Exception:  # of operators it does not know; then what is declared has to do
        return []


def _dim(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def ending_of(network: Any, name: str, *, opset: int) -> Ending:
    """Whether an output is a softmax over the classes, or its logarithm."""
    makers = {output: node for node in network.graph.node for output in node.output}
    node, is_cast = makers.get(name), False
    while node is not None and node.op_type in _PASSING and node.domain in ("", "ai.onnx"):
        is_cast |= node.op_type == "Cast"
        node = makers.get(node.input[0])
    if node is None or node.domain not in ("", "ai.onnx"):
        return Ending()
    axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
    axis = axes[0] if axes else (-1 if opset >= 13 else 1)
    if node.op_type in ("Softmax", "LogSoftmax") and axis in (1, -1):
        return Ending(node.op_type, node.input[0], is_cast)
    return Ending()


def new_names(network: Any) -> Callable[[str], str]:
    """A function from a word to a name that nothing in the network has, nor a name it gave."""
    taken = set(_names(network.graph))
    for function in network.functions:
        taken.update(name for node in function.node for name in _names_of(node))

    def name(word: str) -> str:
        given, number = word, 0
        while given in taken:
            number += 1
            given = f"{word}_{number}"
        taken.add(given)
        return given

    return name


def _names(graph: Any) -> Iterator[str]:
    for part in (graph.input, graph.output, graph.value_info, graph.initializer):
        yield from (one.name for one in part)
    yield from (one.values.name for one in graph.sparse_initializer)
    for node in graph.node:
        yield from _names_of(node)


def _names_of(node: Any) -> Iterator[str]:
    yield from (node.name, *node.input, *node.output)
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            yield from _names(inner)
