"""What a fitted map computes for rows of logits, written once for every array library.

A library is an object with the few operations used here (``g``): ONNX nodes in
:mod:`shiftcal.export.onnx`, tensors in :mod:`shiftcal.export.pytorch`. Values have ``+ - * / <``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError, NotFittedError
from shiftcal.maps import FARTHEST, Map, Temperature
from shiftcal.methods import Method
from shiftcal.numerics.fits import LEAST_SHARE, MARGIN, lowest_top1
from shiftcal.numerics.temperature import LEAST_ENTROPY
from shiftcal.persistence import encode
from shiftcal.types import FitStatus

Numbers: TypeAlias = dict[str, NDArray[np.float64]]

# Up to this many classes a softmax in float32 is accurate to 1e-6; with a thousand, onnxruntime
# and PyTorch both come close to that.
FEW_CLASSES = 100


def formula_of(applied: Map) -> tuple[str, Numbers]:
    """The formula of a fitted map, and its numbers.

    ``scaled``: ``softmax(z / temperature)``.

    ``mixed``: ``cooled softmax(z / temperature) + own softmax(z) + uniform / k``.

    ``by-entropy``: ``softmax(z / T)``, ``log T = log_scale + power log h`` clipped to ``log_low``
    and ``log_high``, ``h`` the entropy over ``log k``.

    ``linear``: ``softmax(x W + b)``, ``x`` the log-probabilities; ``centred``: ``x`` the logits
    less their mean. ``W`` is ``(k, k)``, or ``(k,)`` for a diagonal.

    ``table``: the predicted class gets ``base[j] + slope[j] (c - start[j])`` for its confidence
    ``c``, ``j`` the number of ``edges`` below it; the others share the rest. ``beta``: it gets
    ``1 / (1 + exp(-(a log c - b log(1 - c) + m)))``.

    Raises:
        InputError: If none of these is what it computes.
    """
    fitted: Any = applied
    numbers: dict[str, Any]
    match applied.name:
        case _ if applied.is_temperature:
            formula, numbers = "scaled", {"temperature": fitted.temperature_}
        case "ensemble-temperature":
            weights = zip(("cooled", "own", "uniform"), fitted.weights_, strict=True)
            formula, numbers = "mixed", {"temperature": fitted.temperature_, **dict(weights)}
        case "entropy-temperature":
            ends = {"log_low": np.log(fitted.low_), "log_high": np.log(fitted.high_)}
            curve = {"log_scale": fitted.log_scale_, "power": fitted.power_}
            formula, numbers = "by-entropy", {**curve, **ends}
        case "vector" | "matrix" | "dirichlet":
            formula = "centred" if applied.name == "matrix" else "linear"
            numbers = {"weight": fitted.weight_.T, "intercept": fitted.intercept_}
        case "histogram":
            flat = np.zeros_like(fitted.accuracy_)
            base = np.clip(fitted.accuracy_, 0.0, 1.0)
            formula = "table"
            numbers = {"edges": fitted.edges_, "start": flat, "base": base, "slope": flat}
        case "isotonic" | "spline":
            x, y = fitted.confidence_, fitted.accuracy_
            slope = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
            start, base = np.concatenate([x[:1], x]), np.concatenate([y[:1], y])
            formula, numbers = "table", {"edges": x, "start": start, "base": base, "slope": slope}
        case "beta":
            formula, numbers = "beta", {"a": fitted.a_, "b": fitted.b_, "m": fitted.m_}
        case _:
            raise InputError(
                f"the map {applied.name!r} cannot be exported; these can: temperatures of one "
                "number, ensemble-temperature, entropy-temperature, vector, matrix, dirichlet, "
                "histogram, isotonic, spline, beta."
            )
    return formula, {name: np.array(one, np.float64, order="C") for name, one in numbers.items()}


def is_fine(formula: str, k: int) -> bool:
    """Whether float32 is enough; logarithms, edges of bins and long sums need float64."""
    return formula in ("scaled", "mixed") and k <= FEW_CLASSES


def probabilities(g: Any, formula: str, p: Mapping[str, Any], z: Any, k: int) -> Any:
    """Calibrated probabilities ``(n, k)`` of logits ``z``, ``p`` being the formula's numbers."""
    d = z - g.max(z)  # rounds no difference between large logits
    if formula in ("table", "beta"):
        return g.finished(_top1(g, formula, p, d, k))
    if formula == "mixed":
        cooled = g.softmax(d / p["temperature"]) * p["cooled"]
        probs = cooled + g.softmax(d) * p["own"] + p["uniform"] / float(k)
    else:
        d = scores(g, formula, p, d, k)
        d = d - g.max(d)
        probs = g.softmax(d)
    below = d < 0.0
    probs = g.finished(probs)
    # Where rounding tied the largest score with another, raise it by one step; else keep every bit.
    others = g.max(g.where(below, probs, 0.0))
    return g.where(below, probs, g.maximum(probs, others * (1 + g.step)))


def scores(g: Any, formula: str, p: Mapping[str, Any], z: Any, k: int) -> Any:
    """Numbers whose softmax are the probabilities, of the formulas that have them."""
    if formula == "scaled":
        return z / p["temperature"]
    d = z - g.max(z)
    if formula == "by-entropy":
        e = g.where(g.first_largest(d, k), 0.0, g.exp(d))
        total = g.sum(e) + 1.0
        entropy = g.log(total) - g.sum(e * d) / total
        h = g.minimum(g.maximum(entropy / math.log(k), LEAST_ENTROPY), 1.0)
        log_t = g.log(h) * p["power"] + p["log_scale"]
        return d / g.exp(g.minimum(g.maximum(log_t, p["log_low"]), p["log_high"]))
    x = d - (g.sum(d) / float(k) if formula == "centred" else g.log(g.sum(g.exp(d))))
    return g.linear(x, p["weight"]) + p["intercept"]


def _top1(g: Any, formula: str, p: Mapping[str, Any], d: Any, k: int) -> Any:
    """As :func:`shiftcal.numerics.fits.rows_with_top1`, searching the scale in every row."""
    predicted = g.first_largest(d, k)
    others = g.where(predicted, -math.inf, d)
    second = g.max(others)
    shares = g.exp(others - second)
    log_odds = -(second + g.log(g.sum(shares)))
    if formula == "beta":
        x = g.minimum(log_odds, FARTHEST)
        minus_log_c = g.log(g.exp(-x) + 1.0)
        odds = (x + minus_log_c) * p["b"] - minus_log_c * p["a"] + p["m"]
        c = 1.0 / (g.exp(-odds) + 1.0)
    else:
        c = g.rounded(1e12 / (g.exp(-log_odds) + 1.0)) / 1e12  # to 12 decimals, as the map does
        place = g.count_below(p["edges"], c)
        start, base, slope = (g.take(p[name], place) for name in ("start", "base", "slope"))
        c = base + slope * (c - start)
    c = g.minimum(g.maximum(c, lowest_top1(k)), 1.0)
    shares = g.where(predicted, 0.0, g.maximum(shares, max(LEAST_SHARE, g.tiny)))
    cap = c * (1.0 - MARGIN)
    # The scale at which sum min(cap, scale * share) is 1 - c: the first at which nothing is capped.
    falling, places = g.falling(shares, k - 1), g.places(k - 1)
    scales = ((1.0 - c) - places * cap) / g.sums_from_end(falling, k - 1)
    # The last always counts: at the lowest confidence all are at the cap, up to rounding.
    last = g.where(places < k - 2.5, 0.0, 1.0)
    fits = g.maximum(g.where(cap < scales * falling, 0.0, 1.0), last)
    scale = g.sum(g.where(g.first_largest(fits, k - 1), scales, 0.0))
    return g.where(predicted, c, g.minimum(shares * scale, cap))


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
