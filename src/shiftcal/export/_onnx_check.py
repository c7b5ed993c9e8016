"""Whether a network with its calibration gives what shiftcal gives, by running both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_scores
from shiftcal._optional import require
from shiftcal.errors import FileError, InputError, MissingExtra
from shiftcal.export._applied import drawn_logits
from shiftcal.maps import Map
from shiftcal.models._onnx_file import open_session

# Largest difference of a probability that is rounding.
TOLERANCE = 1e-6
_ROWS, _SIDE = 4, 32
_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


class Cannot(Exception):
    """Why a network could not be run on drawn inputs."""


class Names(NamedTuple):
    """What the calibration takes and gives: the names in the network, and the kind of scores."""

    source: str
    kind: str
    probabilities: str
    confidence: str


def calibration_difference(file: bytes, applied: Map, names: Names) -> float:
    """Largest difference of the calibration alone, as a network of its own, on drawn logits.

    Raises:
        Cannot: If onnxruntime does not load it.
        FileError: If it is more than rounding.
    """
    drawn: NDArray[Any] = drawn_logits(applied.n_classes_)
    if names.kind == "probabilities":
        drawn = np.exp(drawn - drawn.max(axis=1, keepdims=True))
        drawn /= drawn.sum(axis=1, keepdims=True)
    session = _session(file)
    (given,) = session.get_inputs()
    source: NDArray[Any] = drawn.astype(_DTYPES[given.type])
    return _difference(session, {given.name: source}, source, applied=applied, names=names)


def network_difference(
    file: Path | bytes,
    inputs: Mapping[str, Any] | None,
    *,
    applied: Map,
    names: Names,
    folder: Path,
) -> float:
    """Largest difference of the whole network, whose source must be an output.

    Args:
        file: The network.
        inputs: Arrays by name; ``None`` draws them.
        applied: The map.
        names: What the calibration takes and gives.
        folder: Where weights lie that the network refers to.

    Raises:
        Cannot: If onnxruntime does not load it, or it does not run on drawn inputs.
        InputError: If it does not run on given ones, or gives another kind of scores.
        FileError: If the difference is more than rounding.
    """
    session = _session(file, folder)
    feed = _drawn(session) if inputs is None else _given(session, inputs)
    try:
        (source,) = session.run([names.source], feed, _without_log())
    except Exception as error:  # onnxruntime's own classes, one for every code
        reason = str(error).strip().partition("\n")[0]
        if inputs is None:
            raise Cannot(f"the network does not run on drawn inputs ({reason})") from error
        raise InputError(f"the network does not run on the inputs of check=: {reason}") from error
    return _difference(session, feed, source, applied=applied, names=names)


def has_runtime() -> bool:
    """Whether onnxruntime is there."""
    try:
        require("onnxruntime", extra="onnx", needed_by="check=")
    except MissingExtra:
        return False
    return True


def runs(file: Path) -> bool:
    """Whether onnxruntime is there and loads a file."""
    try:
        _session(file)
    except (Cannot, MissingExtra):
        return False
    return True


def _session(file: Path | bytes, folder: Path | None = None) -> Any:
    """A session; that a runtime does not know an operator or its version is no fault of the file.

    The file has passed ONNX's own checker.
    """
    # A path has its folder.
    where = folder if isinstance(file, bytes) else None
    try:
        return open_session(file, providers=["CPUExecutionProvider"], threads=1, folder=where)
    except FileError as error:
        raise Cannot(f"onnxruntime does not load it ({error})") from error


def _without_log() -> Any:
    """Options of a run whose failure is told by what it raises alone."""
    runtime = require("onnxruntime", extra="onnx", needed_by="check=")
    options = runtime.RunOptions()
    options.log_severity_level = 4
    return options


def _difference(
    session: Any, feed: Mapping[str, Any], source: NDArray[Any], *, applied: Map, names: Names
) -> float:
    found, confidence = session.run([names.probabilities, names.confidence], dict(feed))
    wanted = applied.apply_checked(_scores(source, applied, names))
    worst = max(
        float(np.abs(found - wanted).max()), float(np.abs(confidence - wanted.max(axis=1)).max())
    )
    if not worst <= TOLERANCE:  # nor if it is no number
        raise FileError(
            f"the calibrated network must give shiftcal's probabilities to {TOLERANCE:g}; run by "
            f"onnxruntime it is {worst:.3g} off, so that nothing was written. Please report it, "
            "with the operators of the network."
        )
    return worst


def _scores(source: NDArray[Any], applied: Map, names: Names) -> NDArray[Any]:
    try:
        return check_scores(source, input=names.kind, k=applied.n_classes_)
    except InputError as error:
        other = "probabilities" if names.kind == "logits" else "logits"
        raise InputError(
            f"{names.source!r} of the network must hold {names.kind} of {applied.n_classes_} "
            f"classes, and what came when it ran cannot be: {error} If the network gives {other}, "
            f'say so: input="{other}" in Python, --input {other} on the command line.'
        ) from error


def _given(session: Any, inputs: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    wanted = [given.name for given in session.get_inputs()]
    if sorted(inputs) != sorted(wanted):
        raise InputError(
            f"check= must have an array for every input of the network, {', '.join(wanted)}; got "
            f"{', '.join(map(str, inputs)) or 'none'}."
        )
    return {name: np.asarray(value) for name, value in inputs.items()}


def _drawn(session: Any) -> dict[str, NDArray[Any]]:
    """Noise for every input; rows are few, and other open dimensions those of small images."""
    rng = np.random.default_rng(0)
    feed: dict[str, NDArray[Any]] = {}
    for given in session.get_inputs():
        if given.type not in _DTYPES:
            raise Cannot(f"inputs of type {given.type} cannot be drawn")
        shape = [
            dim if isinstance(dim, int) else (_ROWS if place == 0 else _SIDE)
            for place, dim in enumerate(given.shape)
        ]
        feed[given.name] = _noise(rng, _DTYPES[given.type], shape)
    return feed


def _noise(rng: np.random.Generator, dtype: Any, shape: list[int]) -> NDArray[Any]:
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    # Words of a text have numbers as well, and every vocabulary has the first two.
    return rng.integers(0, 256 if dtype is np.uint8 else 2, shape).astype(dtype)
