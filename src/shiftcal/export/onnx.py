"""A fitted calibration appended to the graph of an ONNX network, run and compared with shiftcal."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, partialmethod
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import SMALLEST_PROBABILITY, check_choice, check_scores
from shiftcal.errors import FileError, InputError, InputWarning, MissingExtra, UnknownName, require
from shiftcal.export.formulas import (
    applied_map,
    digest_of,
    drawn_logits,
    formula_of,
    is_fine,
    probabilities,
)
from shiftcal.files import atomic_write, file_to_write
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import temperature_of
from shiftcal.models.model import ModelFile
from shiftcal.models.onnx import external_files, open_session

# Largest difference of a probability that counts as rounding.
TOLERANCE = 1e-6
# The oldest version of ONNX's own operators that is written.
OLDEST_OPSET = 13
_HALVES = ("FLOAT16", "BFLOAT16")
_FLOATS = {"FLOAT", "DOUBLE", *_HALVES}
# Domains of ONNX's own operators.
_OWN = ("", "ai.onnx")
# Types of inputs that numpy calls otherwise.
_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}
# Operations that are one node.
_NODES = {
    "exp": "Exp",
    "log": "Log",
    "rounded": "Round",
    "where": "Where",
    "maximum": "Max",
    "minimum": "Min",
    "take": "Gather",
}


def _onnx() -> Any:
    return require("onnx", extra="onnx", needed_by="export to ONNX")


@dataclass(frozen=True)
class OnnxExport:
    """What was written.

    Attributes:
        path: The file.
        method: Name of the method, or of the map if it was one alone.
        map: Name of the map that is applied.
        temperature: Its temperature, if it is one.
        digest: SHA-256 of the map, which the file holds as ``shiftcal.digest``.
        opset: Version of the operators, as it was.
        source: Name of what is calibrated inside the network.
        input: What that holds: ``"logits"`` or ``"probabilities"``.
        outputs: Names of all outputs, in order.
        probabilities: Name of the calibrated probabilities ``(n, k)``.
        confidence: Name of the largest of them ``(n,)``.
        data_files: Files with weights that belong to it, in the folder of the file.
        checked: What was run and compared with shiftcal: ``"network"``, ``"calibration"`` if the
            network could not be run, or ``None``.
        difference: The largest difference of a probability there; ``None`` if nothing was run.
    """

    path: Path
    method: str
    map: str
    temperature: float | None
    digest: str
    opset: int
    source: str
    input: str
    outputs: tuple[str, ...]
    probabilities: str
    confidence: str
    data_files: tuple[str, ...]
    checked: str | None
    difference: float | None


def to_onnx(
    fitted: Method | Map,
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    output_name: str | None = None,
    input: str | None = None,
    replace: bool = False,
    check: object = True,
) -> OnnxExport:
    """Write a network followed by its calibration.

    The graph, its opset and its IR version are kept. Two outputs are added:
    ``probabilities (n, k)`` and ``confidence (n,)``, or ``calibrated_probabilities`` and so on
    where a name is taken. ``model`` is never changed.

    Args:
        fitted: A fitted map, or a fitted method; one that adapts to a target must have done so.
        model: The ONNX file. If it has weights in other files, ``output`` must be in its folder.
        output: The file to write.
        output_name: Which output holds the scores; by default the only one of shape ``(n, k)``.
        input: What that output holds, ``"logits"`` or ``"probabilities"``; by default what
            ``fitted`` was fitted on. If the output is a softmax, its input counts as logits; so
            does the logarithm of a softmax.
        replace: Leave the calibrated output out. All others are kept in any case.
        check: Run the result by onnxruntime and compare it with shiftcal. ``True`` draws inputs,
            and does nothing if onnxruntime is not installed; an array, or arrays by name, are
            used as inputs; ``False`` runs nothing.

    Raises:
        InputError: If ``fitted`` is not of this network, or it is unclear which output is meant.
        FileError: If a file cannot be used or written, or the result is more than 1e-6 off.
    """
    applied = applied_map(fitted)
    k = applied.n_classes_
    if input is not None:
        check_choice(input, ("logits", "probabilities"), name="input")
    onnx = _onnx()
    network, file, others = _read(Path(model))
    target, folder = file_to_write(output), file.path.parent
    if target.exists() and any(target.samefile(one) for one in (file.path, *others)):
        raise FileError(
            f"{output} is read by the export and must not be replaced by it. Name another file."
        )
    if others and target.parent.resolve() != folder.resolve():
        raise FileError(
            f"{output} must be in the folder of {model}, whose weights are in other files there. "
            f"Name {folder / target.name}, or save the network with its weights inside."
        )
    scores = _choose_output(network, k=k, name=output_name, path=model)
    plan = _plan(network, scores, applied, input=input, fitted_input=fitted.input)
    calibrated = onnx.ModelProto()
    calibrated.CopyFrom(network)
    calibrated.graph.node.extend(plan.nodes)
    kept = [one for one in network.graph.output if not (replace and one.name == scores.name)]
    del calibrated.graph.output[:]
    calibrated.graph.output.extend([*kept, *plan.values])
    temperature, digest = temperature_of(applied), digest_of(applied)
    facts = {
        "version": version("shiftcal"),
        "method": fitted.name,
        "map": applied.name,
        **({} if temperature is None else {"temperature": repr(temperature)}),
        "input": plan.kind,
        "source": plan.source,
        "digest": digest,
    }
    for name, text in facts.items():
        calibrated.metadata_props.add(key=f"shiftcal.{name}", value=text)
    with atomic_write(target) as temporary:
        temporary.write_bytes(calibrated.SerializeToString())
        if (objection := _objection(temporary)) and not _objection(file.path):
            raise FileError(f"{target} was not written, as it would not be valid: {objection}")
        checked, difference = _checked(temporary, calibrated, plan, applied, check)
    probabilities_name, confidence_name = (value.name for value in plan.values)
    return OnnxExport(
        path=target,
        method=fitted.name,
        map=applied.name,
        temperature=temperature,
        digest=digest,
        opset=plan.opset,
        source=plan.source,
        input=plan.kind,
        outputs=tuple(value.name for value in calibrated.graph.output),
        probabilities=probabilities_name,
        confidence=confidence_name,
        data_files=tuple(one.relative_to(folder).as_posix() for one in others),
        checked=checked,
        difference=difference,
    )


def _read(path: Path) -> tuple[Any, ModelFile, list[Path]]:
    """The network, its file, and the other files it refers to."""
    file = ModelFile(path, "an ONNX file")
    try:
        network = _onnx().load_model_from_string(file.data)
        others = external_files(file.data, file.path)
        objection = _objection(file.path)
        if objection and _session(file.path) is not None:
            objection = ""  # the checker may not know an operator that onnxruntime has
    except (FileError, MissingExtra):
        raise
    except Exception as error:  # protobuf's own classes
        objection = str(error) or type(error).__name__
    if objection:
        first = objection.strip().partition("\n")[0]
        raise FileError(f"{path} must be an ONNX file; it is damaged or something else: {first}")
    if (opset := _opset(network)) < OLDEST_OPSET:
        raise FileError(
            f"{path} must import ONNX's own operators of version {OLDEST_OPSET} or later; it has "
            f"{opset or 'none'}. Update it: onnx.version_converter.convert_version(network, 17)."
        )
    if any(entry.key == "shiftcal.digest" for entry in network.metadata_props):
        raise FileError(
            f"{path} is calibrated by shiftcal already, and calibrating it twice would be wrong. "
            "Name the uncalibrated network."
        )
    return network, file, others


def _opset(network: Any) -> int:
    return next((int(x.version) for x in network.opset_import if x.domain in _OWN), 0)


def _objection(path: Path) -> str:
    """What ONNX's checker objects to in a file; empty if nothing."""
    try:
        _onnx().checker.check_model(str(path))
    except Exception as error:  # its own classes, and protobuf's
        return str(error) or type(error).__name__
    return ""


class _Output(NamedTuple):
    """An output that may hold scores: its ONNX dtype, such as ``FLOAT``, and its shape."""

    name: str
    dtype: str
    rows: int | str | None
    columns: int | str | None


def _choose_output(network: Any, *, k: int, name: str | None, path: object) -> _Output:
    """The output that holds scores of ``k`` classes; ``None`` takes the only one it may be."""
    onnx = _onnx()
    with suppress(Exception):  # fill in what can be known of the shapes, if all operators are known
        network = onnx.shape_inference.infer_shapes(network)
    outputs = {value.name: value for value in network.graph.output}
    if name is not None and name not in outputs:
        raise UnknownName(f"{path} has no output {name!r}. Its outputs: {', '.join(outputs)}.")
    if name is not None:
        outputs = {name: outputs[name]}
    candidates: list[_Output] = []
    for value in outputs.values():
        tensor = value.type.tensor_type
        dtype = onnx.TensorProto.DataType.Name(tensor.elem_type)
        shape: list[Any] = [
            int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None
            for dim in tensor.shape.dim
        ]
        shape = shape if tensor.HasField("shape") else [None, None]
        # A column dimension without a number may be the classes.
        if (
            dtype in _FLOATS
            and len(shape) == 2
            and (shape[1] == k or not isinstance(shape[1], int))
        ):
            candidates.append(_Output(value.name, dtype, *shape))
    candidates = [one for one in candidates if one.columns == k] or candidates
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise InputError(
            f"{path} has several outputs of shape (n, {k}): "
            f"{', '.join(one.name for one in candidates)}. Name the one that holds the scores: "
            "output_name= in Python, --output-name on the command line."
        )
    zipped = any(node.op_type == "ZipMap" for node in network.graph.node)
    hint = 'skl2onnx leaves ZipMap out with options={"zipmap": False}.'
    found = ", ".join(map(onnx.helper.printable_value_info, outputs.values()))
    raise InputError(
        f"the output that is calibrated must be floats of shape (n, {k}), a column for each "
        f"class of the calibration; {path} has none: {found or 'no output'}. "
        f"{hint if zipped else 'Both must be of one model.'}"
    )


def _ending(network: Any, name: str) -> tuple[str, str, bool]:
    """``"Softmax"``, ``"LogSoftmax"`` or ``""`` before an output, its input, and a cast between."""
    makers = {output: node for node in network.graph.node for output in node.output}
    node, is_cast = makers.get(name), False
    while node is not None and node.op_type in ("Identity", "Cast") and node.domain in _OWN:
        is_cast |= node.op_type == "Cast"
        node = makers.get(node.input[0])
    if node is not None and node.domain in _OWN and node.op_type in ("Softmax", "LogSoftmax"):
        axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        if (axes or [-1])[0] in (1, -1):
            return node.op_type, node.input[0], is_cast
    return "", "", False


class _Value:
    """A value in a graph, known by its name; arithmetic with it adds nodes."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _with(self, kind: str, other: Any) -> _Value:
        return self.graph.add(kind, self, other)

    def _after(self, kind: str, other: Any) -> _Value:
        return self.graph.add(kind, other, self)

    def __neg__(self) -> _Value:
        return self.graph.add("Neg", self)

    __add__ = partialmethod(_with, "Add")
    __sub__ = partialmethod(_with, "Sub")
    __mul__ = partialmethod(_with, "Mul")
    __truediv__ = partialmethod(_with, "Div")
    __lt__ = partialmethod(_with, "Less")
    __rsub__ = partialmethod(_after, "Sub")
    __rtruediv__ = partialmethod(_after, "Div")


class _Graph:
    """The operations of :mod:`shiftcal.export.formulas` as nodes, in the forms of an opset.

    Constants are nodes too, so that the network's initializers stay as they are.

    Args:
        opset: Version of the operators.
        prefix: What no name in the network starts with.
        dtype: In which the calibration computes.
        out: Dtype of the probabilities.
    """

    def __init__(self, opset: int, prefix: str, dtype: Any, out: Any) -> None:
        self.opset, self.prefix, self.dtype, self.out = opset, prefix, dtype, out
        self.step, self.tiny = float(np.finfo(out).eps), float(np.finfo(dtype).tiny)
        self.nodes: list[Any] = []
        self._constants: dict[tuple[str, bytes], _Value] = {}
        for method, kind in _NODES.items():
            setattr(self, method, partial(self.add, kind))

    def add(self, kind: str, *inputs: Any, outputs: int = 1, **settings: Any) -> _Value:
        """Add a node; its first output. Numbers and arrays become constants."""
        values = [one if isinstance(one, _Value) else self.constant(one) for one in inputs]
        name = f"{self.prefix}/{kind}-{len(self.nodes)}"
        names = [f"{name}-{i}" for i in range(outputs)]
        sources = [one.name for one in values]
        self.nodes.append(_onnx().helper.make_node(kind, sources, names, name, **settings))
        return _Value(self, names[0])

    def constant(self, value: Any, dtype: Any = None) -> _Value:
        """A constant, by default of the dtype of the calibration."""
        array = np.asarray(value, dtype=self.dtype if dtype is None else dtype)
        key = (f"{array.dtype.str}{array.shape}", array.tobytes())
        if key not in self._constants:
            tensor = _onnx().numpy_helper.from_array(array)
            self._constants[key] = self.add("Constant", value=tensor)
        return self._constants[key]

    def cast(self, x: _Value, dtype: Any) -> _Value:
        return self.add("Cast", x, to=_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def finished(self, x: _Value) -> _Value:
        """``x`` in the dtype of the output, which constants after it have too."""
        x = x if self.out is self.dtype else self.cast(x, self.out)
        self.dtype = self.out
        return x

    def reduce(self, kind: str, x: _Value, *, keepdims: int = 1) -> _Value:
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            return self.add(kind, x, self.constant([1], np.int64), keepdims=keepdims)
        return self.add(kind, x, axes=[1], keepdims=keepdims)

    def max(self, x: _Value) -> _Value:
        return self.reduce("ReduceMax", x)

    def sum(self, x: _Value) -> _Value:
        return self.reduce("ReduceSum", x)

    def softmax(self, x: _Value) -> _Value:
        return self.add("Softmax", x, axis=1)

    def linear(self, x: _Value, weight: Any) -> _Value:
        return self.add("Mul" if weight.ndim == 1 else "MatMul", x, weight)

    def first_largest(self, x: _Value, width: int) -> _Value:
        first = self.add("ArgMax", x, axis=1, keepdims=1)
        return self.add("Equal", self.constant(np.arange(width)[None], np.int64), first)

    def places(self, n: int) -> _Value:
        return self.constant(np.arange(n)[None])

    def count_below(self, edges: Any, x: _Value) -> _Value:
        """By bisection: the memory of a row is one number."""
        place = self.add("Mul", self.cast(x, np.int64), self.constant(0, np.int64))
        bits = len(edges).bit_length()
        edges = np.concatenate([edges, np.full((1 << bits) - 1 - len(edges), np.inf)])
        for bit in reversed(range(bits)):
            last = place + self.constant((1 << bit) - 1, np.int64)
            less = self.add("Gather", edges, last) < x
            place = self.add("Where", less, place + self.constant(1 << bit, np.int64), place)
        return place

    def falling(self, x: _Value, n: int) -> _Value:
        return self.add("TopK", x, self.constant([n], np.int64), outputs=2, axis=1)

    def sums_from_end(self, x: _Value, n: int) -> _Value:
        return self.add("CumSum", x, self.constant(1, np.int64), reverse=1)


class _Plan(NamedTuple):
    """The nodes to append, what they take, and the declarations of the two outputs they give."""

    opset: int
    source: str
    kind: str
    nodes: list[Any]
    values: list[Any]


def _plan(
    network: Any, scores: _Output, applied: Map, *, input: str | None, fitted_input: str
) -> _Plan:
    """The nodes that calibrate an output; ``input`` is what it holds, if the user named it."""
    helper, opset, k = _onnx().helper, _opset(network), applied.n_classes_
    ending, before, is_cast = _ending(network, scores.name)
    source, kind = scores.name, input or fitted_input
    if ending == "LogSoftmax":
        if input == "probabilities":
            raise InputError(
                f"the output {scores.name!r} is the logarithm of a softmax, which counts as "
                'logits; got input="probabilities". Leave input out.'
            )
        kind = "logits"
    elif ending == "Softmax" and kind == "logits":
        source = before
    # Names are strings with their length before them; none of ours may be in the network.
    stored, prefix = network.SerializeToString(), "shiftcal"
    while f"{prefix}/".encode() in stored:
        prefix += "_"

    def free(name: str) -> str:
        taken = bytes([len(name)]) + name.encode() in stored
        return free(f"calibrated_{name}") if taken else name

    names = [free("probabilities"), free("confidence")]
    out: Any = np.float64 if scores.dtype == "DOUBLE" else np.float32
    # What is cast behind a softmax may be of half precision before it. onnxruntime computes such
    # networks in float32 where it has nothing else and removes a cast to half and back, so the
    # calibration would see other logits: it computes them in float64.
    half = scores.dtype in _HALVES or (source != scores.name and is_cast)
    formula, numbers = formula_of(applied)
    g = _Graph(opset, prefix, out if is_fine(formula, k) and not half else np.float64, out)
    z = g.cast(_Value(g, source), g.dtype)
    if kind == "probabilities":
        z = g.add("Log", g.add("Max", z, SMALLEST_PROBABILITY))
    probs = probabilities(g, formula, numbers, z, k)
    confidence = g.reduce("ReduceMax", probs, keepdims=0)
    for value, name in zip((probs, confidence), names, strict=True):
        g.nodes.append(helper.make_node("Identity", [value.name], [name], f"{prefix}/{name}"))
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(out))
    values = [
        helper.make_tensor_value_info(name, dtype, shape)
        for name, shape in zip(names, ([scores.rows, k], [scores.rows]), strict=True)
    ]
    return _Plan(opset, source, kind, g.nodes, values)


# --------------------------------------------------------------------------------------
# Whether the network with its calibration returns what shiftcal returns, by running both.
# --------------------------------------------------------------------------------------


def _checked(
    file: Path, calibrated: Any, plan: _Plan, applied: Map, check: object
) -> tuple[str | None, float | None]:
    """What was run, and the largest difference."""
    if check is False:
        return None, None
    try:
        runtime = require("onnxruntime", extra="onnx", needed_by="check= of an export to ONNX")
    except MissingExtra:
        if check is True:
            return None, None
        raise
    silent = runtime.RunOptions()
    silent.log_severity_level = 4  # a failure is reported by what it raises
    alone = _compare_alone(calibrated, plan, applied)
    # The calibrated scores must be an output to be compared with.
    more = _onnx().ModelProto()
    more.CopyFrom(calibrated)
    if plan.source not in [value.name for value in calibrated.graph.output]:
        more.graph.output.append(_onnx().ValueInfoProto(name=plan.source))
    session = _session(bytes(more.SerializeToString()), file.parent)
    reason = "onnxruntime does not load it"
    if session is not None:
        try:
            feed = _drawn(session) if check is True else _passed(session, check)
            (source,) = session.run([plan.source], feed, silent)
            return "network", max(alone, _difference(session, feed, source, plan, applied))
        except (InputError, FileError):
            raise
        except Exception as error:  # onnxruntime's own classes, one for every code
            reason = f"it does not run on its inputs ({str(error).strip().partition(chr(10))[0]})"
            if check is not True:
                raise InputError(f"check= must fit the network: {reason}.") from error
    warnings.warn(
        f"the calibrated network was not run: {reason}. Pass inputs as check=, an array or "
        "arrays by name, or set check=False.",
        InputWarning,
        stacklevel=3,
    )
    return "calibration", alone


def _session(file: Path | bytes, folder: Path | None = None) -> Any:
    """A session; ``None`` if onnxruntime is not installed, or does not know an operator."""
    try:
        return open_session(file, providers=["CPUExecutionProvider"], threads=1, folder=folder)
    except (FileError, MissingExtra):
        return None


def _passed(session: Any, check: object) -> dict[str, NDArray[Any]]:
    names = [one.name for one in session.get_inputs()]
    if not isinstance(check, Mapping) and hasattr(check, "__array__") and len(names) == 1:
        check = {names[0]: check}
    if not isinstance(check, Mapping) or sorted(check) != sorted(names):
        raise InputError(
            "check must be True, False, an array for a network of one input, or an array for "
            f"every input ({', '.join(names)}); got {type(check).__name__}."
        )
    return {name: np.asarray(value) for name, value in check.items()}


def _drawn(session: Any) -> dict[str, NDArray[Any]]:
    """Noise for every input: four rows, and 32 for other open dimensions."""
    rng = np.random.default_rng(0)
    feed: dict[str, NDArray[Any]] = {}
    for one in session.get_inputs():
        dtype = np.dtype(_DTYPES.get(one.type, one.type[7:-1]))  # of "tensor(uint8)"
        sizes = [4, *[32] * len(one.shape)]
        shape = [n if isinstance(n, int) else sizes[i > 0] for i, n in enumerate(one.shape)]
        if dtype.kind == "f":
            feed[one.name] = rng.standard_normal(shape).astype(dtype)
        else:  # token ids too: every vocabulary has the first two
            feed[one.name] = rng.integers(0, 256 if dtype == np.uint8 else 2, shape).astype(dtype)
    return feed


def _compare_alone(calibrated: Any, plan: _Plan, applied: Map) -> float:
    """Largest difference of the calibration as a network of its own, on drawn scores."""
    helper = _onnx().helper
    dtype = plan.values[0].type.tensor_type.elem_type
    given = helper.make_tensor_value_info(plan.source, dtype, [None, applied.n_classes_])
    graph = helper.make_graph(plan.nodes, "calibration", [given], plan.values)
    opsets = [helper.make_opsetid("", plan.opset)]
    alone = helper.make_model(graph, opset_imports=opsets, ir_version=calibrated.ir_version)
    scores: NDArray[Any] = drawn_logits(applied.n_classes_)
    if plan.kind == "probabilities":
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
    scores = scores.astype(helper.tensor_dtype_to_np_dtype(dtype))
    session = _session(bytes(alone.SerializeToString()))
    return _difference(session, {plan.source: scores}, scores, plan, applied)


def _difference(
    session: Any, feed: Mapping[str, Any], source: NDArray[Any], plan: _Plan, applied: Map
) -> float:
    probs, confidence = session.run([value.name for value in plan.values], dict(feed))
    try:
        scores = check_scores(source, input=plan.kind, k=applied.n_classes_)
    except InputError as error:
        other = "probabilities" if plan.kind == "logits" else "logits"
        raise InputError(
            f"{plan.source!r} of the network must hold {plan.kind} of {applied.n_classes_} "
            f"classes, and what it returned cannot be: {error} If the network returns {other}, "
            f'set input="{other}" in Python, --input {other} on the command line.'
        ) from error
    wanted = applied.apply_checked(scores)
    worst = max(
        float(np.abs(probs - wanted).max()), float(np.abs(confidence - wanted.max(axis=1)).max())
    )
    if not worst <= TOLERANCE:  # nor if it is NaN
        raise FileError(
            f"the calibrated network must return shiftcal's probabilities to {TOLERANCE:g}; run by "
            f"onnxruntime it is {worst:.3g} off, so nothing was written. Please report it, "
            "with the operators of the network."
        )
    return worst
