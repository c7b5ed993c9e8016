"""What a fitted map computes for a row, as one of five formulas that every exporter knows."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError, NotFittedError
from shiftcal.maps import FARTHEST, Map, Temperature
from shiftcal.methods import Method
from shiftcal.numerics.temperature import LEAST_ENTROPY
from shiftcal.persistence import encode
from shiftcal.types import FitStatus

Array: TypeAlias = NDArray[np.float64]

# Up to this many classes a softmax in float32 is accurate to 1e-6; with a thousand, onnxruntime
# and PyTorch both come close to that.
FEW_CLASSES = 100


class Scaled(NamedTuple):
    """``softmax(z / temperature)``."""

    temperature: float


class Mixed(NamedTuple):
    """``cooled * softmax(z / temperature) + own * softmax(z) + uniform / k``."""

    temperature: float
    cooled: float
    own: float
    uniform: float


class ByEntropy(NamedTuple):
    """``softmax(z / T)``, ``log T = log_scale + power * log h`` clipped to two ends.

    ``h`` is the entropy over ``log k``, at least ``least``.
    """

    log_scale: float
    power: float
    log_low: float
    log_high: float
    least: float


class Linear(NamedTuple):
    """``softmax(W x + b)``, ``x`` the log-probabilities, or logits less their mean if centred.

    Attributes:
        weight: ``(k, k)``, or ``(k,)`` for a diagonal.
        intercept: ``(k,)``.
        centred: Which of the two ``x`` is.
    """

    weight: Array
    intercept: Array
    centred: bool


class Table(NamedTuple):
    """A piecewise linear curve: ``base[j] + slope[j] * (c - start[j])``, ``j`` edges below ``c``.

    Attributes:
        edges: ``(m,)``, ascending; an edge belongs to the piece below it.
        start: ``(m + 1,)``.
        base: ``(m + 1,)``.
        slope: ``(m + 1,)``.
    """

    edges: Array
    start: Array
    base: Array
    slope: Array


class BetaCurve(NamedTuple):
    """``1 / (1 + exp(-(a log c - b log(1 - c) + m)))``, log-odds at most ``farthest``."""

    a: float
    b: float
    m: float
    farthest: float


class Top1(NamedTuple):
    """The predicted class gets the curve's confidence, the others share the rest."""

    curve: Table | BetaCurve


Formula: TypeAlias = Scaled | Mixed | ByEntropy | Linear | Top1


def formula_of(applied: Map) -> Formula:
    """What a fitted map computes.

    Raises:
        InputError: If none of the formulas does.
    """
    fitted: Any = applied
    match applied.name:
        case _ if applied.is_temperature:
            return Scaled(float(fitted.temperature_))
        case "ensemble-temperature":
            return Mixed(float(fitted.temperature_), *map(float, fitted.weights_))
        case "entropy-temperature":
            low, high = float(np.log(fitted.low_)), float(np.log(fitted.high_))
            curve = float(fitted.log_scale_), float(fitted.power_)
            return ByEntropy(*curve, low, high, LEAST_ENTROPY)
        case "vector" | "matrix" | "dirichlet":
            return Linear(fitted.weight_, fitted.intercept_, centred=applied.name == "matrix")
        case "histogram":
            flat = np.zeros_like(fitted.accuracy_)
            return Top1(Table(fitted.edges_, flat, np.clip(fitted.accuracy_, 0.0, 1.0), flat))
        case "isotonic" | "spline":
            x, y = fitted.confidence_, fitted.accuracy_
            slope = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
            start, base = np.concatenate([x[:1], x]), np.concatenate([y[:1], y])
            return Top1(Table(x, start, base, slope))
        case "beta":
            return Top1(BetaCurve(float(fitted.a_), float(fitted.b_), float(fitted.m_), FARTHEST))
    raise InputError(
        f"the map {applied.name!r} cannot be exported; these can: temperatures of one number, "
        "ensemble-temperature, entropy-temperature, vector, matrix, dirichlet, histogram, "
        "isotonic, spline, beta."
    )


def applied_map(fitted: object) -> Map:
    """The map that a fitted map (itself) or a fitted and adapted method applies to every row.

    Raises:
        InputError: If it is neither, or applies something other than a map it holds.
        NotFittedError: If it is not fitted, or must adapt to a target first.
    """
    if not isinstance(fitted, Map | Method):
        name = fitted.__name__ if isinstance(fitted, type) else type(fitted).__name__
        raise InputError(
            f"what is exported must be a fitted method or map; got {name}. shiftcal.load reads a "
            "saved one."
        )
    if not hasattr(fitted, "n_classes_"):
        raise NotFittedError(
            f"this {type(fitted).__name__} is not fitted yet; call fit before it is exported."
        )
    if isinstance(fitted, Map):
        return fitted
    if fitted.uses_target and fitted.selection_ is None:
        raise NotFittedError(
            f"{fitted.name} has not seen a target yet, and what it exports depends on it; call "
            "adapt with unlabelled logits of the data to be calibrated first."
        )
    held, selection = getattr(fitted, "map_", None), fitted.selection_
    several = getattr(fitted, "maps_", None)
    if held is None and several is not None and selection and selection.index is not None:
        held = several[selection.index]
    temperature = 1.0 if selection is None else selection.temperature
    if held is None and temperature is not None:
        held = Temperature()
        held.temperature_, held.n_classes_ = float(temperature), fitted.n_classes_
        held.status_ = FitStatus("converged")
    logits = drawn_logits(fitted.n_classes_)
    if not isinstance(held, Map) or not np.allclose(
        held.apply_checked(logits), fitted._apply(logits), rtol=0, atol=1e-12
    ):
        raise InputError(
            f"what is exported must apply one map to every row; {fitted.name} applies something "
            "else. Export a map alone, or use the method in Python."
        )
    return held


def drawn_logits(k: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Rows of logits ``(n, k)`` from flat to far apart, with ties, always the same."""
    rng = np.random.default_rng(0)
    drawn = [spread * rng.standard_normal((20, k)) for spread in (0.1, 1.0, 10.0)]
    # A constant added to a row must change nothing; many small numbers next to a large one are
    # hard to sum.
    confident = drawn[0].copy()
    confident[:, 0] += 2 + np.log(k)
    rows = [*drawn, confident, np.zeros((1, k)), drawn[-1][:5] + 100]
    return np.concatenate(rows).astype(np.float32)


def digest_of(applied: Map) -> str:
    """SHA-256 of the kind of a map and of all it has learnt."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    node = encode(applied, arrays)
    state = hashlib.sha256(json.dumps([node["name"], node["fitted"]], sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        state.update(f"{name} {array.dtype.str} {array.shape}".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()
