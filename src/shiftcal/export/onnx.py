"""A fitted calibration appended to the graph of an ONNX network, run and compared with shiftcal."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partialmethod
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import GUARD_FROM, SMALLEST_PROBABILITY, check_choice, check_scores
from shiftcal.errors import FileError, InputError, InputWarning, MissingExtra, UnknownName, require
from shiftcal.export.formulas import applied_map, drawn_logits, formula_of, is_fine, probabilities
from shiftcal.files import atomic_write, file_to_write, parsing
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import temperature_of
from shiftcal.models.model import ModelFile, first_line
from shiftcal.models.onnx import external_files, open_session

# Largest difference of a probability that counts as rounding.
TOLERANCE = 1e-6
# The oldest version of ONNX's own operators that is written.
OLDEST_OPSET = 13
_HALVES = ("FLOAT16", "BFLOAT16")
# Domains of ONNX's own operators.
_OWN = ("", "ai.onnx")
# Types of inputs that numpy calls otherwise.
_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}


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
        source: Name of what is calibrated inside the network.
        input: What that holds: ``"logits"`` or ``"probabilities"``.
        outputs: Names of all outputs, in order; the last two are the probabilities ``(n, k)`` and
            the largest of them ``(n,)``.
        checked: What was run and compared with shiftcal: ``"network"``, ``"calibration"`` if the
            network could not be run, or ``None``.
        difference: The largest difference of a probability there; ``None`` if nothing was run.
    """

    path: Path
    method: str
    map: str
    temperature: float | None
    source: str
    input: str
    outputs: tuple[str, ...]
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
        output_name: Which output holds the scores; default: the only one of shape ``(n, k)``.
        input: What that output holds, ``"logits"`` or ``"probabilities"``; default: what
            ``fitted`` was fitted on. If the output is a softmax, its input counts as logits.
        replace: Leave the calibrated output out. All others are kept in any case.
        check: Run the result in onnxruntime and compare it with shiftcal. ``True`` draws inputs,
            and does nothing if onnxruntime is not installed; an array, or arrays by name, are
            used as inputs; ``False`` runs nothing.

    Raises:
        InputError: If ``fitted`` is not of this network, or it is unclear which output is meant.
        FileError: If a file cannot be used or written, or the result is more than 1e-6 off.
    """
    applied = applied_map(fitted)
    k = applied.n_classes_
    kind = check_choice(input or fitted.input, ("logits", "probabilities"), name="input")
    network, file, opset = _read(Path(model))
    others, target = external_files(file.data, file.path), file_to_write(output)
    if target.exists() and any(target.samefile(one) for one in (file.path, *others)):
        raise FileError(f"{output} is read by the export and must not be replaced. Name another.")
    if others and target.parent.resolve() != file.path.parent.resolve():
        raise FileError(f"{output} must be in the folder of {model}, where its weights are.")
    name, dtype, rows = _choose_output(network, k=k, name=output_name, path=model)
    before = _before_softmax(network, name) if kind == "logits" else None
    source = before or name
    prefix, names = _free_names(file.data)
    out: Any = np.float64 if dtype == "DOUBLE" else np.float32
    formula, numbers = formula_of(applied)
    # onnxruntime computes half precision in float32 where it has nothing else, and removes casts
    # to half and back: float32 would see other logits than the output shows.
    narrow = is_fine(formula, k) and dtype not in _HALVES
    g = _Graph(opset, prefix, out if narrow else np.float64, out)
    z = g.cast(_Value(g, source), g.dtype)
    if kind == "probabilities":
        z = g.log(g.maximum(z, SMALLEST_PROBABILITY))
    probs = probabilities(g, formula, numbers, z, k)
    helper, graph = _onnx().helper, network.graph
    if replace:
        graph.output.remove(next(one for one in graph.output if one.name == name))
    for new, value, shape in zip(
        names, (probs, g.reduce("ReduceMax", probs, keepdims=0)), ([rows, k], [rows]), strict=True
    ):
        g.nodes.append(helper.make_node("Identity", [value.name], [new], f"{prefix}/{new}"))
        number_type = helper.np_dtype_to_tensor_dtype(np.dtype(out))
        graph.output.append(helper.make_tensor_value_info(new, number_type, shape))
    graph.node.extend(g.nodes)
    temperature = temperature_of(applied)
    facts = {
        "version": version("shiftcal"),
        "method": fitted.name,
        "map": applied.name,
        "temperature": temperature,
        "input": kind,
        "source": source,
    }
    for key, fact in facts.items():
        if fact is not None:
            network.metadata_props.add(key=f"shiftcal.{key}", value=str(fact))
    compared = _Comparison(network, g.nodes, source, kind, applied)
    run = check is not False
    checked, difference = compared.run(check, file.path.parent) if run else (None, None)
    with atomic_write(target) as temporary:
        temporary.write_bytes(network.SerializeToString())
    return OnnxExport(
        path=target,
        method=fitted.name,
        map=applied.name,
        temperature=temperature,
        source=source,
        input=kind,
        outputs=tuple(value.name for value in graph.output),
        checked=checked,
        difference=difference,
    )


def _read(path: Path) -> tuple[Any, ModelFile, int]:
    """The network, its file, and the version of ONNX's own operators in it."""
    file = ModelFile(path, "an ONNX file")
    with parsing(path, "an ONNX file"):
        network = _onnx().load_model_from_string(file.data)
    opset = next((int(x.version) for x in network.opset_import if x.domain in _OWN), 0)
    if opset < OLDEST_OPSET:
        raise FileError(
            f"{path} must be an ONNX file with operators of version {OLDEST_OPSET} or later; it "
            f"has {opset or 'none'}. Update it with onnx.version_converter."
        )
    if any(entry.key == "shiftcal.version" for entry in network.metadata_props):
        raise FileError(f"{path} is calibrated by shiftcal already. Name the uncalibrated network.")
    return network, file, opset


def _choose_output(
    network: Any, *, k: int, name: str | None, path: object
) -> tuple[str, str, int | str | None]:
    """Name, ONNX dtype and number of rows of the output that holds scores of ``k`` classes."""
    onnx = _onnx()
    with suppress(Exception):  # fill in what can be known of the shapes, if all operators are known
        network = onnx.shape_inference.infer_shapes(network)
    outputs = {value.name: value for value in network.graph.output}
    if name is not None and name not in outputs:
        raise UnknownName(f"{path} has no output {name!r}. Its outputs: {', '.join(outputs)}.")
    fitting: list[tuple[Any, ...]] = []
    for value in outputs.values() if name is None else [outputs[name]]:
        tensor = value.type.tensor_type
        dtype = onnx.TensorProto.DataType.Name(tensor.elem_type)
        sizes = [size.dim_value or size.dim_param or None for size in tensor.shape.dim]
        sizes = sizes if tensor.HasField("shape") else [None, None]
        if dtype in ("FLOAT", "DOUBLE", *_HALVES) and len(sizes) == 2:
            fitting.append((value.name, dtype, *sizes))
    # Columns without a number may be the classes.
    exact = [one for one in fitting if one[3] == k]
    fitting = exact or [one for one in fitting if not isinstance(one[3], int)]
    if len(fitting) == 1:
        return fitting[0][:3]
    if fitting:
        raise InputError(
            f"{path} has several outputs of shape (n, {k}): {', '.join(x[0] for x in fitting)}. "
            "Name the one that holds the scores: output_name=, or --output-name."
        )
    found = ", ".join(map(onnx.helper.printable_value_info, outputs.values()))
    raise InputError(
        f"the calibrated output must be floats of shape (n, {k}), a column for each class of the "
        f"calibration; {path} has none: {found}. Both must be of one model."
    )


def _before_softmax(network: Any, name: str) -> str | None:
    """What goes into the softmax over the columns that gives an output; ``None`` if none does."""
    for node in network.graph.node:
        if name in node.output and node.op_type == "Softmax" and node.domain in _OWN:
            axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
            return str(node.input[0]) if (axes or [-1])[0] in (1, -1) else None
    return None


def _free_names(stored: bytes) -> tuple[str, list[str]]:
    """A prefix of names and names of two outputs that do not occur in a network."""
    prefix, names = "shiftcal", ["probabilities", "confidence"]
    while f"{prefix}/".encode() in stored:
        prefix += "_"
    for i in range(2):
        # Names are stored with their length before them.
        while bytes([len(names[i])]) + names[i].encode() in stored:
            names[i] = f"calibrated_{names[i]}"
    return prefix, names


class _Value:
    """A value in a graph, known by its name; arithmetic with it adds nodes."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _with(self, kind: str, other: Any) -> _Value:
        return self.graph.add(kind, self, other)

    __add__ = partialmethod(_with, "Add")
    __sub__ = partialmethod(_with, "Sub")
    __mul__ = partialmethod(_with, "Mul")
    __truediv__ = partialmethod(_with, "Div")
    __lt__ = partialmethod(_with, "Less")


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
        self.step = float(np.finfo(out).eps)
        self.nodes: list[Any] = []

    def add(self, kind: str, *inputs: Any, **settings: Any) -> _Value:
        """Add a node; its output. Numbers and arrays become constants."""
        names = [(x if isinstance(x, _Value) else self.constant(x)).name for x in inputs]
        name = f"{self.prefix}/{kind}-{len(self.nodes)}"
        self.nodes.append(_onnx().helper.make_node(kind, names, [name], name, **settings))
        return _Value(self, name)

    exp = partialmethod(add, "Exp")
    log = partialmethod(add, "Log")
    where = partialmethod(add, "Where")
    maximum = partialmethod(add, "Max")
    softmax = partialmethod(add, "Softmax", axis=1)

    def constant(self, value: Any, dtype: Any = None) -> _Value:
        """A constant, by default of the dtype of the calibration."""
        array = np.asarray(value, dtype=self.dtype if dtype is None else dtype)
        return self.add("Constant", value=_onnx().numpy_helper.from_array(array))

    def cast(self, x: _Value, dtype: Any) -> _Value:
        return self.add("Cast", x, to=_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def finished(self, x: _Value) -> _Value:
        """``x`` in the dtype of the output, which constants after it have too."""
        x = x if self.out is self.dtype else self.cast(x, self.out)
        self.dtype = self.out
        return x

    def reduce(self, kind: str, x: _Value, *, keepdims: int = 1) -> _Value:
        """Over the columns; axes are an input of newer operators, and an attribute of older."""
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            return self.add(kind, x, self.constant([1], np.int64), keepdims=keepdims)
        return self.add(kind, x, axes=[1], keepdims=keepdims)

    max = partialmethod(reduce, "ReduceMax")
    sum = partialmethod(reduce, "ReduceSum")

    def linear(self, x: _Value, weight: Any) -> _Value:
        return self.add("Mul" if weight.ndim == 1 else "MatMul", x, weight)


@dataclass(frozen=True)
class _Comparison:
    """Runs a calibrated network and compares it with shiftcal.

    Attributes:
        network: The network; its last two outputs are the calibration's.
        nodes: Those of the calibration.
        source: Name of what they take.
        kind: What that holds.
        applied: The map.
    """

    network: Any
    nodes: list[Any]
    source: str
    kind: str
    applied: Map

    def run(self, check: object, folder: Path) -> tuple[str | None, float | None]:
        """What was run, and the largest difference; ``folder`` has the weights, if apart."""
        try:
            runtime = require("onnxruntime", extra="onnx", needed_by="check= of an export to ONNX")
        except MissingExtra:
            if check is True:
                return None, None
            raise
        alone = self._alone()
        # The calibrated scores must be an output to be compared with.
        network = _onnx().ModelProto()
        network.CopyFrom(self.network)
        if self.source not in [value.name for value in network.graph.output]:
            network.graph.output.append(_onnx().ValueInfoProto(name=self.source))
        silent = runtime.RunOptions()
        silent.log_severity_level = 4  # a failure is reported by what it raises
        try:
            session = _session(network, folder)
            feed = _feed(session, check)
            (scores,) = session.run([self.source], feed, silent)
        except Exception as error:  # onnxruntime's own classes, one for every code
            if check is not True:
                raise InputError(f"check= must fit the network: {first_line(error)}") from error
            warnings.warn(
                f"the calibrated network was not run: {first_line(error)} Pass inputs as check=, "
                "an array or arrays by name, or set check=False.",
                InputWarning,
                stacklevel=4,
            )
            return "calibration", alone
        return "network", max(alone, self._difference(session, feed, scores))

    def _alone(self) -> float:
        """Largest difference of the calibration as a network of its own, on drawn scores."""
        helper, outputs = _onnx().helper, list(self.network.graph.output)[-2:]
        dtype, k = outputs[0].type.tensor_type.elem_type, self.applied.n_classes_
        taken = helper.make_tensor_value_info(self.source, dtype, [None, k])
        graph = helper.make_graph(self.nodes, "calibration", [taken], outputs)
        opsets = [one for one in self.network.opset_import if one.domain in _OWN]
        versions = {"opset_imports": opsets, "ir_version": self.network.ir_version}
        scores: NDArray[Any] = drawn_logits(k)
        if self.kind == "probabilities":
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores /= scores.sum(axis=1, keepdims=True)
        scores = scores.astype(helper.tensor_dtype_to_np_dtype(dtype))
        session = _session(helper.make_model(graph, **versions))
        return self._difference(session, {self.source: scores}, scores)

    def _difference(self, session: Any, feed: Mapping[str, Any], source: NDArray[Any]) -> float:
        names = [value.name for value in self.network.graph.output][-2:]
        probs, confidence = session.run(names, dict(feed))
        try:
            # Repeated, since a few rows that look like probabilities only give a warning.
            many = np.repeat(source, GUARD_FROM, axis=0)
            scores = check_scores(many, input=self.kind, k=self.applied.n_classes_)[::GUARD_FROM]
        except InputError as error:
            other = "probabilities" if self.kind == "logits" else "logits"
            raise InputError(
                f"{self.source!r} of the network must hold {self.kind}: {error} If it holds "
                f'{other}, set input="{other}", or --input {other}.'
            ) from error
        wanted = self.applied.apply_checked(scores)
        off = np.abs(probs - wanted).max(), np.abs(confidence - wanted.max(axis=1)).max()
        worst = float(np.max(off))  # NaN if one is
        if not worst <= TOLERANCE:
            raise FileError(
                f"the calibrated network must return shiftcal's probabilities to {TOLERANCE:g}; in "
                f"onnxruntime it is {worst:.3g} off, so nothing was written. Please report it."
            )
        return worst


def _session(network: Any, folder: Path | None = None) -> Any:
    data = bytes(network.SerializeToString())
    return open_session(data, providers=["CPUExecutionProvider"], threads=1, folder=folder)


def _feed(session: Any, check: object) -> dict[str, NDArray[Any]]:
    """The user's inputs, or noise: ten rows, and 32 for other open dimensions."""
    inputs = session.get_inputs()
    if isinstance(check, Mapping):
        return {name: np.asarray(value) for name, value in check.items()}
    if check is not True:
        return {inputs[0].name: np.asarray(check)}
    rng = np.random.default_rng(0)
    feed: dict[str, NDArray[Any]] = {}
    for one in inputs:
        dtype = np.dtype(_DTYPES.get(one.type, one.type[7:-1]))  # of "tensor(uint8)"
        sizes = [GUARD_FROM, *[32] * len(one.shape)]
        shape = [n if isinstance(n, int) else sizes[i > 0] for i, n in enumerate(one.shape)]
        if dtype.kind == "f":
            feed[one.name] = rng.standard_normal(shape).astype(dtype)
        else:  # token ids too: every vocabulary has the first two
            feed[one.name] = rng.integers(0, 256 if dtype == np.uint8 else 2, shape).astype(dtype)
    return feed
