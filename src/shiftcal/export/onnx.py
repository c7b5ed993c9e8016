"""A fitted calibration appended to the graph of an ONNX network, run and compared with shiftcal."""

from __future__ import annotations

import filecmp
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import SMALLEST_PROBABILITY, check_choice, check_scores
from shiftcal.errors import FileError, InputError, InputWarning, MissingExtra, UnknownName, require
from shiftcal.export.formulas import (
    FEW_CLASSES,
    BetaCurve,
    ByEntropy,
    Formula,
    Linear,
    Mixed,
    Scaled,
    Top1,
    applied_map,
    digest_of,
    drawn_logits,
    formula_of,
)
from shiftcal.files import atomic_write, file_to_write, make_folder
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.method import temperature_of
from shiftcal.models.model import ModelFile
from shiftcal.models.onnx import external_files, open_session
from shiftcal.numerics.top1 import LEAST_SHARE, MARGIN, lowest_top1

# Largest difference of a probability that counts as rounding.
TOLERANCE = 1e-6
# Operators that every calibration needs came with this version.
OLDEST_OPSET = 9
# Largest size of a protobuf file.
_LARGEST_FILE = 2**31 - 1
_HALVES = ("FLOAT16", "BFLOAT16")
_FLOATS = {"FLOAT", "DOUBLE", *_HALVES}


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
        model: The ONNX file. Weights in other files are copied, if ``output`` is in another folder.
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
    formula, k = formula_of(applied), applied.n_classes_
    if input is not None:
        check_choice(input, ("logits", "probabilities"), name="input")
    onnx = _onnx()
    network, file, others = _read(Path(model))
    target = file_to_write(output)
    read = [file.path, *(file.path.parent / place for place in others)]
    if target.exists() and any(target.samefile(one) for one in read):
        raise FileError(
            f"{output} is read by the export and must not be replaced by it. Name another file."
        )
    scores = _choose_output(network, k=k, name=output_name, path=model)
    plan = _plan(network, scores, formula, k, input=input, fitted_input=fitted.input)

    calibrated = onnx.ModelProto()
    calibrated.CopyFrom(network)
    calibrated.graph.node.extend(plan.nodes)
    if replace:
        kept = [value for value in calibrated.graph.output if value.name != scores.name]
        del calibrated.graph.output[:]
        calibrated.graph.output.extend(kept)
    calibrated.graph.output.extend(plan.values)
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
    if calibrated.ByteSize() > _LARGEST_FILE:
        raise FileError(
            f"an ONNX file must not be larger than {_LARGEST_FILE:,} bytes; with its calibration "
            f"this one has {calibrated.ByteSize():,}. Save the weights as external data first."
        )
    with _copied(others, file.path.parent, target.parent), atomic_write(target) as temporary:
        temporary.write_bytes(calibrated.SerializeToString())
        if (objection := _objection(temporary)) and not _objection(file.path):
            raise FileError(f"{target} was not written, as it would not be valid: {objection}")
        checked, difference = _checked(temporary, calibrated, plan, applied, check)
        file.loaded()
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
        probabilities=plan.outputs[0],
        confidence=plan.outputs[1],
        data_files=tuple(place.as_posix() for place in others),
        checked=checked,
        difference=difference,
    )


# --------------------------------------------------------------------------------------
# The network as it is: its file, its outputs, its names, and what it ends in.
# --------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[Any, ModelFile, list[Path]]:
    """The network, its file, and the other files it refers to, relative to its folder."""
    file = ModelFile(path, "an ONNX file")
    objection = ""
    try:
        network = _onnx().load_model_from_string(file.data)
        others = external_files(file.data, file.path)
        # The checker may not know an operator that onnxruntime has.
        if (objection := _objection(file.path)) and _runs(file.path):
            objection = ""
    except (FileError, MissingExtra):
        raise
    except Exception as error:  # protobuf's own classes
        objection = str(error) or type(error).__name__
    if objection:
        first = objection.strip().partition("\n")[0]
        raise FileError(f"{path} must be an ONNX file; it is damaged or something else: {first}")
    opsets = [one.version for one in network.opset_import if one.domain in ("", "ai.onnx")]
    if not opsets or opsets[0] < OLDEST_OPSET:
        raise FileError(
            f"{path} must import ONNX's own operators of version {OLDEST_OPSET} or later; it has "
            f"{opsets[0] if opsets else 'none'}. onnx.version_converter updates it."
        )
    if any(entry.key == "shiftcal.digest" for entry in network.metadata_props):
        raise FileError(
            f"{path} is calibrated by shiftcal already, and calibrating it twice would be wrong. "
            "Name the uncalibrated network."
        )
    return network, file, [one.relative_to(file.path.parent) for one in others]


def _objection(path: Path) -> str:
    """What ONNX's checker objects to in a file; empty if nothing."""
    try:
        _onnx().checker.check_model(str(path))
    except Exception as error:  # its own classes, and protobuf's
        return str(error) or type(error).__name__
    return ""


@contextmanager
def _copied(places: Sequence[Path], source: Path, target: Path) -> Iterator[None]:
    """Copy files from a folder to another, where they are missing; removed if the block fails."""
    copies: list[Path] = []
    try:
        for place in places:
            original, copy = source / place, target / place
            if not copy.exists():
                make_folder(copy.parent)
                with atomic_write(copy) as temporary:
                    shutil.copyfile(original, temporary)
                copies.append(copy)
            elif not copy.samefile(original) and not filecmp.cmp(original, copy, shallow=False):
                raise FileError(
                    f"{copy} must be the copy of {original}, which holds weights of the network; "
                    "another file of that name is there. Write to another folder."
                )
        yield
    except BaseException:
        for copy in copies:
            with suppress(OSError):
                copy.unlink(missing_ok=True)
        raise


class _Output(NamedTuple):
    """An output that may hold scores: its ONNX dtype, such as ``FLOAT``, and its shape."""

    name: str
    dtype: str
    rows: int | str | None
    columns: int | None


def _choose_output(network: Any, *, k: int, name: str | None, path: object) -> _Output:
    """The output that holds scores of ``k`` classes; ``None`` takes the only one it may be."""
    onnx = _onnx()
    try:  # fill in what can be known of the shapes
        inferred = {
            one.name: one for one in onnx.shape_inference.infer_shapes(network).graph.output
        }
    except Exception:  # operators it does not know
        inferred = {}
    described: dict[str, str] = {}
    candidates: list[_Output] = []
    for declared in network.graph.output:
        value = inferred.get(declared.name, declared)
        kind = value.type.WhichOneof("value") or "tensor_type"
        described[declared.name] = f"{declared.name} {kind.removesuffix('_type')}"
        if kind != "tensor_type":
            continue
        tensor = value.type.tensor_type
        dtype = onnx.TensorProto.DataType.Name(tensor.elem_type)
        shape: list[Any] = [None, None]
        if tensor.HasField("shape"):
            shape = [
                int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None
                for dim in tensor.shape.dim
            ]
        shown = ["?" if dim is None else dim for dim in shape]
        text = shown if tensor.HasField("shape") else "?"
        described[declared.name] = f"{declared.name} {dtype.lower()} {text}"
        if dtype in _FLOATS and len(shape) == 2:
            columns = shape[1] if isinstance(shape[1], int) else None
            if columns in (k, None):
                candidates.append(_Output(declared.name, dtype, shape[0], columns))
    every = ", ".join(described.values()) or "none"
    if name is not None:
        if name not in described:
            raise UnknownName(f"{path} has no output {name!r}. Its outputs: {every}.")
        candidates = [one for one in candidates if one.name == name]
    candidates = [one for one in candidates if one.columns == k] or candidates
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise InputError(
            f"{path} has several outputs of shape (n, {k}): "
            f"{', '.join(one.name for one in candidates)}. Name the one that holds the scores: "
            "output_name= in Python, --output-name on the command line."
        )
    found = f"its outputs: {every}" if name is None else f"output {described[name]}"
    hint = "Both must be of one model."
    if any(node.op_type == "ZipMap" for node in network.graph.node):
        hint = (
            "Its ZipMap makes a dictionary of every row; skl2onnx leaves that out with "
            'options={"zipmap": False}.'
        )
    raise InputError(
        f"the output that is calibrated must be floats of shape (n, {k}), a column for each "
        f"class of the calibration; {path} has none: {found}. {hint}"
    )


def _ending(network: Any, name: str, opset: int) -> tuple[str, str, bool]:
    """``"Softmax"``, ``"LogSoftmax"`` or ``""`` before an output, its input, and a cast between."""
    makers = {output: node for node in network.graph.node for output in node.output}
    node, is_cast = makers.get(name), False
    own = ("", "ai.onnx")
    while node is not None and node.op_type in ("Identity", "Cast") and node.domain in own:
        is_cast |= node.op_type == "Cast"
        node = makers.get(node.input[0])
    if node is not None and node.domain in own and node.op_type in ("Softmax", "LogSoftmax"):
        axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        if (axes[0] if axes else (-1 if opset >= 13 else 1)) in (1, -1):
            return node.op_type, node.input[0], is_cast
    return "", "", False


def _new_names(network: Any) -> Callable[[str], str]:
    """A function from a word to a name that nothing in the network has."""

    def of_node(node: Any) -> Iterator[str]:
        yield from (node.name, *node.input, *node.output)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from of_graph(inner)

    def of_graph(graph: Any) -> Iterator[str]:
        for part in (graph.input, graph.output, graph.value_info, graph.initializer):
            yield from (one.name for one in part)
        yield from (one.values.name for one in graph.sparse_initializer)
        for node in graph.node:
            yield from of_node(node)

    taken = set(of_graph(network.graph))
    taken |= {name for one in network.functions for node in one.node for name in of_node(node)}

    def new(word: str) -> str:
        name, number = word, 0
        while name in taken:
            number += 1
            name = f"{word}_{number}"
        taken.add(name)
        return name

    return new


# --------------------------------------------------------------------------------------
# Formulas as nodes of a graph.
# --------------------------------------------------------------------------------------


class _Value:
    """A value in a graph, known by its name; arithmetic with it adds nodes."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> _Value:
        return self.graph.add("Add", self, other)

    def __sub__(self, other: Any) -> _Value:
        return self.graph.add("Sub", self, other)

    def __rsub__(self, other: Any) -> _Value:
        return self.graph.add("Sub", other, self)

    def __mul__(self, other: Any) -> _Value:
        return self.graph.add("Mul", self, other)

    def __truediv__(self, other: Any) -> _Value:
        return self.graph.add("Div", self, other)

    def __rtruediv__(self, other: Any) -> _Value:
        return self.graph.add("Div", other, self)

    def __lt__(self, other: Any) -> _Value:
        return self.graph.add("Less", self, other)

    def __neg__(self) -> _Value:
        return self.graph.add("Neg", self)


class _Graph:
    """Nodes in the order they are added, in the forms that a version of the operators has.

    Constants are nodes too: initializers of old files must be inputs as well.

    Args:
        opset: Version of the operators.
        k: Number of classes.
        name: Makes a name that nothing in the graph has, from a word.
        dtype: In which the calibration computes.
    """

    def __init__(
        self, opset: int, k: int, *, name: Callable[[str], str], dtype: type[np.floating[Any]]
    ) -> None:
        self.opset, self.k, self.dtype = opset, k, dtype
        self.nodes: list[Any] = []
        self._name, self._onnx = name, _onnx()
        self._constants: dict[tuple[str, bytes], _Value] = {}

    def add(self, kind: str, *inputs: Any, outputs: int = 1, **settings: Any) -> _Value:
        """Add a node; its first output. Numbers and arrays become constants."""
        values = [one if isinstance(one, _Value) else self.constant(one) for one in inputs]
        names = [self._name(kind.lower()) for _ in range(outputs)]
        sources = [one.name for one in values]
        node = self._onnx.helper.make_node(kind, sources, names, self._name(kind), **settings)
        self.nodes.append(node)
        return _Value(self, names[0])

    def constant(self, value: Any, dtype: Any = None) -> _Value:
        """A constant, by default of the dtype of the calibration."""
        array = np.asarray(value, dtype=self.dtype if dtype is None else dtype)
        key = (f"{array.dtype.str}{array.shape}", array.tobytes())
        if key not in self._constants:
            tensor = self._onnx.numpy_helper.from_array(array)
            self._constants[key] = self.add("Constant", value=tensor)
        return self._constants[key]

    def cast(self, x: _Value, dtype: Any) -> _Value:
        """``x`` in another dtype."""
        return self.add("Cast", x, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reduce(self, kind: str, x: _Value, *, keepdims: bool = True) -> _Value:
        """``ReduceMax``, ``ReduceSum`` or ``ReduceMean`` over the classes."""
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            return self.add(kind, x, self.constant([1], np.int64), keepdims=int(keepdims))
        return self.add(kind, x, axes=[1], keepdims=int(keepdims))

    def max(self, x: _Value) -> _Value:
        """The largest of every row, ``(n, 1)``."""
        return self.reduce("ReduceMax", x)

    def sum(self, x: _Value) -> _Value:
        """The sum of every row, ``(n, 1)``."""
        return self.reduce("ReduceSum", x)

    def softmax(self, x: _Value) -> _Value:
        """Over the classes of ``(n, k)``, for which all versions mean the same."""
        return self.add("Softmax", x, axis=1)

    def clip(self, x: _Value, low: float, high: float) -> _Value:
        """``x`` between two ends."""
        return self.add("Min", self.add("Max", x, low), high)

    def sigmoid(self, x: _Value) -> _Value:
        """``1 / (1 + exp(-x))``."""
        return 1.0 / (self.add("Exp", -x) + 1.0)

    def first_largest(self, x: _Value, width: int) -> _Value:
        """True for the first largest of every row, and for it alone."""
        first = self.add("ArgMax", x, axis=1, keepdims=1)
        return self.add("Equal", self.constant(np.arange(width)[None], np.int64), first)


# Probabilities, and where a class has less than the largest score, if rounding may hide that.
_Rows = tuple[_Value, _Value | None]


def _calibrated(
    g: _Graph, source: str, formula: Formula, *, kind: str, out: type[np.floating[Any]]
) -> _Value:
    """Nodes from scores ``(n, k)``, logits or probabilities, to calibrated probabilities."""
    z = g.cast(_Value(g, source), g.dtype)
    if kind == "probabilities":
        z = g.add("Log", g.add("Max", z, SMALLEST_PROBABILITY))
    d = z - g.max(z)  # rounds no difference between large logits
    rows: dict[type, Callable[..., _Rows]] = {
        Scaled: _scaled, Mixed: _mixed, ByEntropy: _by_entropy, Linear: _linear, Top1: _top1
    }  # fmt: skip
    probs, below = rows[type(formula)](formula, g, d)
    if out is not g.dtype:
        probs = g.cast(probs, out)
    if below is None:
        return probs
    # Where rounding tied the largest score with another, raise it by one step; else keep every bit.
    others = g.max(g.add("Where", below, probs, g.constant(0.0, out)))
    step = g.constant(1 + float(np.finfo(out).eps), out)
    return g.add("Where", below, probs, g.add("Max", probs, others * step))


def _scaled(formula: Scaled, g: _Graph, d: _Value) -> _Rows:
    return g.softmax(d / formula.temperature), d < 0.0


def _mixed(formula: Mixed, g: _Graph, d: _Value) -> _Rows:
    cooled = g.softmax(d / formula.temperature) * formula.cooled
    return cooled + g.softmax(d) * formula.own + formula.uniform / g.k, d < 0.0


def _by_entropy(formula: ByEntropy, g: _Graph, d: _Value) -> _Rows:
    e = g.add("Where", g.first_largest(d, g.k), 0.0, g.add("Exp", d))
    total = g.sum(e) + 1.0
    entropy = g.add("Log", total) - g.sum(e * d) / total
    log_h = g.add("Log", g.clip(entropy / np.log(g.k), formula.least, 1.0))
    log_t = log_h * formula.power + formula.log_scale
    t = g.add("Exp", g.clip(log_t, formula.log_low, formula.log_high))
    return g.softmax(d / t), d < 0.0


def _linear(formula: Linear, g: _Graph, d: _Value) -> _Rows:
    if formula.centred:
        x = d - g.reduce("ReduceMean", d)
    else:
        x = d - g.add("Log", g.sum(g.add("Exp", d)))
    if formula.weight.ndim == 1:
        scores = x * formula.weight
    else:
        scores = g.add("MatMul", x, np.ascontiguousarray(formula.weight.T))
    scores = scores + formula.intercept
    d = scores - g.max(scores)
    return g.softmax(d), d < 0.0


def _top1(formula: Top1, g: _Graph, d: _Value) -> _Rows:
    """As :func:`shiftcal.numerics.top1.rows_with_top1`, searching the scale in every row."""
    predicted = g.first_largest(d, g.k)
    others = g.add("Where", predicted, -np.inf, d)
    second = g.max(others)
    shares = g.add("Exp", others - second)
    log_odds = -(second + g.add("Log", g.sum(shares)))
    c = g.clip(_confidence(formula, g, log_odds), lowest_top1(g.k), 1.0)
    shares = g.add("Where", predicted, 0.0, g.add("Max", shares, LEAST_SHARE))
    cap = c * (1.0 - MARGIN)
    # The scale at which sum min(cap, scale * share) is 1 - c: the first at which nothing is capped.
    n, places = g.k - 1, np.arange(g.k - 1)
    if g.opset >= 10:
        falling = g.add("TopK", shares, g.constant([n], np.int64), outputs=2, axis=1)
    else:
        falling = g.add("TopK", shares, outputs=2, axis=1, k=n)
    if g.opset >= 11:
        from_end = g.add("CumSum", falling, g.constant(1, np.int64), reverse=1)
    else:
        from_end = g.add("MatMul", falling, (places[:, None] >= places).astype(np.float64))
    scales = ((1.0 - c) - g.add("Mul", places[None], cap)) / from_end
    # The last always counts: at the lowest confidence all are at the cap, up to rounding.
    last = g.constant((places == n - 1)[None], np.bool_)
    fits = g.add("Or", g.add("Not", cap < scales * falling), last)
    first = g.first_largest(g.cast(fits, np.float32), n)
    scale = g.sum(g.add("Where", first, scales, 0.0))
    return g.add("Where", predicted, c, g.add("Min", shares * scale, cap)), None


def _confidence(formula: Top1, g: _Graph, log_odds: _Value) -> _Value:
    """What the curve makes of log-odds ``(n, 1)``."""
    curve = formula.curve
    if isinstance(curve, BetaCurve):
        x = g.add("Min", log_odds, curve.farthest)
        minus_log_c = g.add("Log", g.add("Exp", -x) + 1.0)
        return g.sigmoid((x + minus_log_c) * curve.b - minus_log_c * curve.a + curve.m)
    scaled = g.sigmoid(log_odds) * 1e12  # rounded to 12 decimals, as the map does
    rounded = g.add("Round", scaled) if g.opset >= 11 else g.add("Floor", scaled + 0.5)
    c = rounded / 1e12
    # How many edges are less than c, by bisection: the memory of a row is one number.
    place = g.add("Mul", g.cast(c, np.int64), g.constant(0, np.int64))
    bits = len(curve.edges).bit_length()
    padding = np.full((1 << bits) - 1 - len(curve.edges), np.inf)
    edges = np.concatenate([curve.edges, padding])
    for bit in reversed(range(bits)):
        last = place + g.constant((1 << bit) - 1, np.int64)
        less = g.add("Gather", edges, last) < c
        place = g.add("Where", less, place + g.constant(1 << bit, np.int64), place)
    start, base, slope = (
        g.add("Gather", values, place) for values in (curve.start, curve.base, curve.slope)
    )
    return base + slope * (c - start)


class _Plan(NamedTuple):
    """The nodes to append, what they take and return, and the declarations of the two outputs."""

    opset: int
    source: str
    kind: str
    outputs: tuple[str, str]
    nodes: list[Any]
    values: list[Any]


def _plan(
    network: Any, scores: _Output, formula: Formula, k: int, *, input: str | None, fitted_input: str
) -> _Plan:
    """The nodes that calibrate an output; ``input`` is what it holds, if the user said so."""
    helper = _onnx().helper
    opset = next(int(one.version) for one in network.opset_import if one.domain in ("", "ai.onnx"))
    ending, before, is_cast = _ending(network, scores.name, opset)
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
    name = _new_names(network)

    def output_name(word: str) -> str:
        new = name(word)
        return new if new == word else name(f"calibrated_{word}")

    outputs = output_name("probabilities"), output_name("confidence")
    out: type[np.floating[Any]] = np.float64 if scores.dtype == "DOUBLE" else np.float32
    # What is cast behind a softmax may be of half precision before it. onnxruntime computes such
    # networks in float32 where it has nothing else and removes a cast to half and back, so the
    # calibration would see other logits: it computes them in float64, as it does sums over many
    # classes, logarithms and edges of bins.
    half = scores.dtype in _HALVES or (source != scores.name and is_cast)
    few = isinstance(formula, Scaled | Mixed) and k <= FEW_CLASSES
    inner = out if few and not half else np.float64
    g = _Graph(opset, k, name=lambda word: name(f"shiftcal/{word}"), dtype=inner)
    probs = _calibrated(g, source, formula, kind=kind, out=out)
    confidence = g.reduce("ReduceMax", probs, keepdims=False)
    for value, outer in zip((probs, confidence), outputs, strict=True):
        node = helper.make_node("Identity", [value.name], [outer], name("shiftcal/Identity"))
        g.nodes.append(node)
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(out))
    values = [
        helper.make_tensor_value_info(outputs[0], dtype, [scores.rows, k]),
        helper.make_tensor_value_info(outputs[1], dtype, [scores.rows]),
    ]
    return _Plan(opset, source, kind, outputs, g.nodes, values)


# --------------------------------------------------------------------------------------
# Whether the network with its calibration returns what shiftcal returns, by running both.
# --------------------------------------------------------------------------------------

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


class _CannotRun(Exception):
    """Why a network could not be run on drawn inputs."""


def _checked(
    file: Path, calibrated: Any, plan: _Plan, applied: Map, check: object
) -> tuple[str | None, float | None]:
    """What was run, and the largest difference."""
    if check is False:
        return None, None
    try:
        require("onnxruntime", extra="onnx", needed_by="check= of an export to ONNX")
    except MissingExtra:
        if check is True:
            return None, None
        raise
    inputs = None if check is True else _inputs(calibrated, check)
    alone = None
    try:
        alone = _compare_alone(calibrated, plan, applied)
        whole = _compare_network(file, calibrated, plan, applied, inputs)
    except _CannotRun as reason:
        warnings.warn(
            f"the calibrated network was not run: {reason}. Pass inputs as check=, an array or "
            "arrays by name, or set check=False.",
            InputWarning,
            stacklevel=3,
        )
        return (None if alone is None else "calibration"), alone
    return "network", max(alone, whole)


def _inputs(calibrated: Any, check: object) -> Mapping[str, Any]:
    if isinstance(check, Mapping):
        return check
    constants = {tensor.name for tensor in calibrated.graph.initializer}
    names = [value.name for value in calibrated.graph.input if value.name not in constants]
    if len(names) != 1 or not hasattr(check, "__array__"):
        raise InputError(
            "check must be True, False, an array for a network of one input, or arrays by name "
            f"({', '.join(names) or 'none'}); got {type(check).__name__}."
        )
    return {names[0]: check}


def _session(file: Path | bytes, folder: Path | None = None) -> Any:
    try:
        return open_session(file, providers=["CPUExecutionProvider"], threads=1, folder=folder)
    except FileError as error:  # a runtime may not know an operator of a valid file
        raise _CannotRun(f"onnxruntime does not load it ({error})") from error


def _runs(file: Path) -> bool:
    """Whether onnxruntime is installed and loads a file."""
    try:
        _session(file)
    except (_CannotRun, MissingExtra):
        return False
    return True


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


def _compare_network(
    file: Path, calibrated: Any, plan: _Plan, applied: Map, inputs: Mapping[str, Any] | None
) -> float:
    """Largest difference of the whole network, on inputs that are passed or drawn."""
    if plan.source in [value.name for value in calibrated.graph.output]:
        session = _session(file)
    else:
        more = _onnx().ModelProto()
        more.CopyFrom(calibrated)
        more.graph.output.append(_onnx().ValueInfoProto(name=plan.source))
        session = _session(bytes(more.SerializeToString()), file.parent)
    feed = _drawn(session) if inputs is None else dict(inputs)
    names = [one.name for one in session.get_inputs()]
    if sorted(feed) != sorted(names):
        raise InputError(
            f"check= must have an array for every input of the network, {', '.join(names)}; got "
            f"{', '.join(map(str, feed)) or 'none'}."
        )
    feed = {name: np.asarray(value) for name, value in feed.items()}
    options = require("onnxruntime", extra="onnx", needed_by="check=").RunOptions()
    options.log_severity_level = 4  # a failure is reported by what it raises
    try:
        (source,) = session.run([plan.source], feed, options)
    except Exception as error:  # onnxruntime's own classes, one for every code
        reason = str(error).strip().partition("\n")[0]
        if inputs is None:
            raise _CannotRun(f"the network does not run on drawn inputs ({reason})") from error
        raise InputError(f"the network does not run on the inputs of check=: {reason}") from error
    return _difference(session, feed, source, plan, applied)


def _difference(
    session: Any, feed: Mapping[str, Any], source: NDArray[Any], plan: _Plan, applied: Map
) -> float:
    probs, confidence = session.run(list(plan.outputs), dict(feed))
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


def _drawn(session: Any) -> dict[str, NDArray[Any]]:
    """Noise for every input: four rows, and 32 for other open dimensions."""
    rng = np.random.default_rng(0)
    feed: dict[str, NDArray[Any]] = {}
    for one in session.get_inputs():
        if one.type not in _DTYPES:
            raise _CannotRun(f"inputs of type {one.type} cannot be drawn")
        dtype: Any = _DTYPES[one.type]
        shape = [
            dim if isinstance(dim, int) else (4 if place == 0 else 32)
            for place, dim in enumerate(one.shape)
        ]
        if np.issubdtype(dtype, np.floating):
            feed[one.name] = rng.standard_normal(shape).astype(dtype)
        else:  # token ids too: every vocabulary has the first two
            feed[one.name] = rng.integers(0, 256 if dtype is np.uint8 else 2, shape).astype(dtype)
    return feed
