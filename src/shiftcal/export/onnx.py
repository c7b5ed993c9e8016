"""Calibration appended to the graph of an ONNX network."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shiftcal._checks import check_choice
from shiftcal._files import atomic_write, file_to_write
from shiftcal._optional import require
from shiftcal.errors import FileError, InputError, InputWarning
from shiftcal.export._applied import applied_map, digest_of
from shiftcal.export._formula import formula_of
from shiftcal.export._onnx_check import (
    Cannot,
    calibration_difference,
    has_runtime,
    network_difference,
    runs,
)
from shiftcal.export._onnx_data import copied, data_files
from shiftcal.export._onnx_graph import Plan, alone, appended, planned, with_source
from shiftcal.export._onnx_network import choose_output, opset_of
from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods.base import temperature_of
from shiftcal.models._model_file import ModelFile

_NEEDED_BY = "export to ONNX"


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
    """Write a network with its calibration behind it.

    The graph, its opset and its IR version are kept. Two outputs come in addition:
    ``probabilities (n, k)`` and ``confidence (n,)``, or ``calibrated_probabilities`` and so on
    where a name is taken. ``model`` is never changed.

    Args:
        fitted: A fitted map, or a fitted method; one that looks at a target must have seen it.
        model: The ONNX file. Weights in files beside it are copied, if ``output`` is in another
            folder.
        output: The file to write.
        output_name: Which output holds the scores; by default the only one of shape ``(n, k)``.
        input: What that output holds, ``"logits"`` or ``"probabilities"``; by default what
            ``fitted`` was fitted on. Of an output that is a softmax, what the softmax was given
            counts as logits; the logarithm of a softmax does, too.
        replace: Leave the calibrated output out. All others are kept in any case.
        check: Run the result by onnxruntime and compare it with shiftcal. ``True`` draws inputs,
            and does nothing if onnxruntime is not installed; an array, or arrays by name, are
            used as inputs; ``False`` runs nothing.

    Raises:
        InputError: If ``fitted`` is not of this network, or it is not clear which output is meant.
        FileError: If a file cannot be used or written, or the result is more than 1e-6 off.
    """
    applied = applied_map(fitted)
    formula = formula_of(applied)
    if input is not None:
        check_choice(input, ("logits", "probabilities"), name="input")
    onnx = require("onnx", extra="onnx", needed_by=_NEEDED_BY)
    network, file, beside = _read(onnx, Path(model))
    target = _target(output, file.path, beside)
    found = choose_output(network, k=applied.n_classes_, name=output_name, path=model)
    plan = planned(
        network,
        found,
        formula,
        k=applied.n_classes_,
        input=input,
        fitted_input=fitted.input,
    )
    about = _about(fitted, applied, plan)
    made = appended(network, plan, replace=replace, about=about)
    with copied(beside, file.path.parent, target.parent), atomic_write(target) as temporary:
        temporary.write_bytes(made.SerializeToString())
        if (objection := _objection(onnx, temporary)) and not _objection(onnx, file.path):
            raise FileError(f"{target} was not written, as it would not be valid: {objection}")
        checked, difference = _checked(temporary, made, plan, applied=applied, check=check)
        file.loaded()
    return OnnxExport(
        path=target,
        method=fitted.name(),
        map=applied.name(),
        temperature=temperature_of(applied),
        digest=about["digest"],
        opset=plan.opset,
        source=plan.names.source,
        input=plan.names.kind,
        outputs=tuple(value.name for value in made.graph.output),
        probabilities=plan.names.probabilities,
        confidence=plan.names.confidence,
        data_files=tuple(place.as_posix() for place in beside),
        checked=checked,
        difference=difference,
    )


def _read(onnx: Any, path: Path) -> tuple[Any, ModelFile, list[Path]]:
    """The network, its file, and where the other files lie that it refers to."""
    file = ModelFile(path, "an ONNX file")
    try:
        network = onnx.load_model_from_string(file.data)
    except Exception as error:  # protobuf's own classes
        raise FileError(_damaged(path, str(error))) from error
    beside = data_files(file.data, file.path)
    objection = _objection(onnx, file.path)
    if objection and not runs(file.path):
        raise FileError(_damaged(path, objection))
    opset_of(network, path)
    if any(entry.key == "shiftcal.digest" for entry in network.metadata_props):
        raise FileError(
            f"{path} is calibrated by shiftcal already, and calibrating it twice would be wrong. "
            "Name the network as it was before."
        )
    return network, file, beside


def _damaged(path: Path, reason: str) -> str:
    first = reason.strip().partition("\n")[0]
    return f"{path} must be an ONNX file; it is damaged or something else: {first}"


def _objection(onnx: Any, path: Path) -> str:
    """What ONNX's checker has against a file; empty if nothing."""
    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # its own classes, and protobuf's
        return str(error) or type(error).__name__
    return ""


def _target(output: str | os.PathLike[str], model: Path, beside: Sequence[Path]) -> Path:
    target = file_to_write(output)
    read = [model, *(model.parent / place for place in beside)]
    if target.exists() and any(target.samefile(file) for file in read):
        raise FileError(
            f"{output} is read by the export and must not be replaced by it. Name another file."
        )
    return target


def _about(fitted: Method | Map, applied: Map, plan: Plan) -> dict[str, str]:
    """What the file says of the calibration."""
    temperature = temperature_of(applied)
    return {
        "version": version("shiftcal"),
        "method": fitted.name(),
        "map": applied.name(),
        **({} if temperature is None else {"temperature": repr(temperature)}),
        "input": plan.names.kind,
        "source": plan.names.source,
        "digest": digest_of(applied),
    }


def _checked(
    file: Path, made: Any, plan: Plan, *, applied: Map, check: object
) -> tuple[str | None, float | None]:
    """What was run, and how far off it was."""
    if check is False or (check is True and not has_runtime()):
        return None, None
    require("onnxruntime", extra="onnx", needed_by="check= of an export to ONNX")
    inputs = None if check is True else _inputs(made, check)
    of_calibration = None
    try:
        of_calibration = calibration_difference(alone(made, plan), applied, plan.names)
        of_network = network_difference(
            with_source(made, plan) or file,
            inputs,
            applied=applied,
            names=plan.names,
            folder=file.parent,
        )
    except Cannot as reason:
        warnings.warn(
            f"the calibrated network was not run: {reason}. Pass inputs it takes as check=, an "
            "array or arrays by name, or say check=False.",
            InputWarning,
            stacklevel=3,
        )
        return (None if of_calibration is None else "calibration"), of_calibration
    return "network", max(of_calibration, of_network)


def _inputs(made: Any, check: object) -> Mapping[str, Any]:
    if isinstance(check, Mapping):
        return check
    constants = {tensor.name for tensor in made.graph.initializer}
    names = [value.name for value in made.graph.input if value.name not in constants]
    if len(names) != 1 or not hasattr(check, "__array__"):
        raise InputError(
            "check must be True, False, an array for a network of one input, or arrays by name "
            f"({', '.join(names) or 'none'}); got {type(check).__name__}."
        )
    return {names[0]: check}
