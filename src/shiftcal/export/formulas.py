"""What a fitted map computes for rows of logits, written once for ONNX and PyTorch.

A library is an object with the few operations used here (``g``): ONNX nodes in
:mod:`shiftcal.export.onnx`, tensors in :mod:`shiftcal.export.pytorch`. Values have ``+ - * / <``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal import errors
from shiftcal.errors import InputError
from shiftcal.maps import Map, Temperature
from shiftcal.methods import Method
from shiftcal.numerics.temperature import FitStatus

# Up to this many classes a softmax in float32 is accurate to 1e-6; with a thousand, onnxruntime
# and PyTorch both come close to that.
FEW_CLASSES = 100


def formula_of(applied: Map) -> tuple[str, dict[str, NDArray[np.float64]]]:
    """The formula of a fitted map, and its numbers.

    ``scaled``: ``softmax(z / temperature)``.

    ``mixed``: ``cooled softmax(z / temperature) + own softmax(z) + uniform / k``.

    ``linear``: ``softmax(x W + b)``, ``x`` the log-probabilities; ``centred``: ``x`` the logits
    minus their mean. ``W`` is ``(k, k)``, or ``(k,)`` for a diagonal.

    Raises:
        InputError: If none of these is what it computes.
    """
    fitted: Any = applied
    numbers: dict[str, Any]
    if applied.is_temperature:
        formula, numbers = "scaled", {"temperature": fitted.temperature_}
    elif applied.name == "ensemble-temperature":
        weights = zip(("cooled", "own", "uniform"), fitted.weights_, strict=True)
        formula, numbers = "mixed", {"temperature": fitted.temperature_, **dict(weights)}
    elif applied.name in ("vector", "matrix", "dirichlet"):
        formula = "centred" if applied.name == "matrix" else "linear"
        numbers = {"weight": fitted.weight_.T, "intercept": fitted.intercept_}
    else:
        raise InputError(
            f"the map {applied.name!r} cannot be exported; these can: temperatures of one number, "
            "ensemble-temperature, vector, matrix, dirichlet. Apply others in Python."
        )
    return formula, {name: np.array(one, np.float64, order="C") for name, one in numbers.items()}


def is_fine(formula: str, k: int) -> bool:
    """Whether float32 is enough; logarithms and long sums need float64."""
    return formula in ("scaled", "mixed") and k <= FEW_CLASSES


def probabilities(g: Any, formula: str, p: Mapping[str, Any], z: Any, k: int) -> Any:
    """Calibrated probabilities ``(n, k)`` of logits ``z``, ``p`` being the formula's numbers."""
    d = z - g.max(z)  # rounds no difference between large logits
    if formula == "mixed":
        cooled = g.softmax(d / p["temperature"]) * p["cooled"]
        probs = cooled + g.softmax(d) * p["own"] + p["uniform"] / float(k)
    else:
        if formula == "scaled":
            d = d / p["temperature"]
        else:
            x = d - (g.sum(d) / float(k) if formula == "centred" else g.log(g.sum(g.exp(d))))
            d = g.linear(x, p["weight"]) + p["intercept"]
        d = d - g.max(d)
        probs = g.softmax(d)
    below = d < 0.0
    probs = g.finished(probs)
    # Where rounding tied the largest score with another, raise it by one step; else keep every bit.
    others = g.max(g.where(below, probs, 0.0))
    return g.where(below, probs, g.maximum(probs, others * (1 + g.step)))


def applied_map(fitted: object) -> Map:
    """The map that a fitted map (itself) or a fitted and adapted method applies to every row.

    Raises:
        InputError: If it is neither, or applies something other than a map it holds.
        NotFittedError: If it is not fitted, or must adapt to a target first.
    """
    if not isinstance(fitted, Map | Method):
        raise InputError(
            f"what is exported must be a fitted method or map; got {type(fitted).__name__}. "
            "shiftcal.load reads a saved one."
        )
    if not hasattr(fitted, "n_classes_"):
        raise errors.NotFittedError(f"{fitted.name} is not fitted yet; call fit first.")
    if isinstance(fitted, Map):
        return fitted
    selection = fitted.selection_
    if fitted.uses_target and selection is None:
        raise errors.NotFittedError(
            f"{fitted.name} has not seen a target yet; call adapt with unlabelled logits first."
        )
    held, several = getattr(fitted, "map_", None), getattr(fitted, "maps_", None)
    if several is not None and selection and selection.index is not None:
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
