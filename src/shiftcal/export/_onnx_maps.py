"""Formulas of maps as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shiftcal._checks import SMALLEST_PROBABILITY
from shiftcal.export._formula import (
    FEW_CLASSES,
    ByEntropy,
    Formula,
    Linear,
    Mixed,
    Scaled,
    Top1,
)
from shiftcal.export._onnx_ops import Ops
from shiftcal.export._onnx_top1 import log_odds, predicted, shared_rows, top1_confidence

# One plus this, times a number, is a larger number: the spacing of floats at one.
_STEP = {np.float32: float(np.finfo(np.float32).eps), np.float64: float(np.finfo(np.float64).eps)}


class Rows(NamedTuple):
    """Probabilities, and where a class has less than the largest score, if that may get lost."""

    probabilities: str
    below: str | None = None


def work_dtype(
    formula: Formula, k: int, out: type[np.floating[Any]], *, half: bool
) -> type[np.floating[Any]]:
    """In which dtype a formula of ``k`` classes is computed, so that 1e-6 is kept.

    Temperatures of few classes need no more than the float32 of the logits; sums over many,
    logarithms of rests and edges of bins do. Nor are logits of half precision cast to float32:
    onnxruntime computes such networks in float32 where it has nothing else, and takes a cast to
    half and back out, so that the calibration would see other logits than the network gives.
    """
    few = isinstance(formula, Scaled | Mixed) and k <= FEW_CLASSES
    return out if few and not half else np.float64


def calibrated(
    ops: Ops, source: str, formula: Formula, *, kind: str, out: type[np.floating[Any]]
) -> str:
    """Nodes from what a network gives to calibrated probabilities; the name of these.

    Args:
        ops: Where nodes are added.
        source: Name of logits or probabilities ``(n, k)``, of any dtype.
        formula: What to compute.
        kind: ``"logits"`` or ``"probabilities"``, what the source is.
        out: Dtype of the probabilities.
    """
    z = ops.cast(source, ops.dtype)
    if kind == "probabilities":
        z = ops.add("Log", ops.add("Max", z, ops.constant(SMALLEST_PROBABILITY)))
    rows = _ROWS[type(formula)](formula, ops, z)
    probabilities = rows.probabilities
    if out is not ops.dtype:
        probabilities = ops.cast(probabilities, out)
    return _keep_top(ops, probabilities, rows.below, out)


def _less_largest(ops: Ops, z: str) -> str:
    """``z - max z``, which rounds no difference between large logits."""
    return ops.add("Sub", z, ops.reduce("ReduceMax", z))


def _below(ops: Ops, d: str) -> str:
    return ops.add("Less", d, ops.constant(0.0))


def _scaled(formula: Scaled, ops: Ops, z: str) -> Rows:
    d = _less_largest(ops, z)
    cooled = ops.add("Div", d, ops.constant(formula.temperature))
    return Rows(ops.softmax(cooled), _below(ops, d))


def _mixed(formula: Mixed, ops: Ops, z: str) -> Rows:
    d = _less_largest(ops, z)
    cooled = ops.softmax(ops.add("Div", d, ops.constant(formula.temperature)))
    both = ops.add(
        "Add",
        ops.add("Mul", cooled, ops.constant(formula.cooled)),
        ops.add("Mul", ops.softmax(d), ops.constant(formula.own)),
    )
    return Rows(ops.add("Add", both, ops.constant(formula.uniform / ops.k)), _below(ops, d))


def _by_entropy(formula: ByEntropy, ops: Ops, z: str) -> Rows:
    d = _less_largest(ops, z)
    e = ops.add("Where", predicted(ops, d, ops.k), ops.constant(0.0), ops.add("Exp", d))
    total = ops.add("Add", ops.reduce("ReduceSum", e), ops.constant(1.0))
    mean = ops.add("Div", ops.reduce("ReduceSum", ops.add("Mul", e, d)), total)
    entropy = ops.add("Sub", ops.add("Log", total), mean)
    share = ops.add("Div", entropy, ops.constant(np.log(ops.k)))
    log_h = ops.add("Log", _within(ops, share, formula.least, 1.0))
    power = ops.add("Mul", log_h, ops.constant(formula.power))
    log_t = ops.add("Add", power, ops.constant(formula.log_scale))
    t = ops.add("Exp", _within(ops, log_t, formula.log_low, formula.log_high))
    return Rows(ops.softmax(ops.add("Div", d, t)), _below(ops, d))


def _linear(formula: Linear, ops: Ops, z: str) -> Rows:
    d = _less_largest(ops, z)
    if formula.centred:
        x = ops.add("Sub", d, ops.reduce("ReduceMean", d))
    else:
        total = ops.reduce("ReduceSum", ops.add("Exp", d))
        x = ops.add("Sub", d, ops.add("Log", total))
    if formula.weight.ndim == 1:
        scores = ops.add("Mul", x, ops.constant(formula.weight))
    else:
        scores = ops.add("MatMul", x, ops.constant(np.ascontiguousarray(formula.weight.T)))
    d = _less_largest(ops, ops.add("Add", scores, ops.constant(formula.intercept)))
    return Rows(ops.softmax(d), _below(ops, d))


def _top1(formula: Top1, ops: Ops, z: str) -> Rows:
    d = _less_largest(ops, z)
    of_row = predicted(ops, d, ops.k)
    confidence = top1_confidence(ops, log_odds(ops, d, of_row), formula.curve)
    return Rows(shared_rows(ops, d, of_row, confidence=confidence))


def _within(ops: Ops, x: str, low: float, high: float) -> str:
    return ops.add("Min", ops.add("Max", x, ops.constant(low)), ops.constant(high))


def _keep_top(ops: Ops, probs: str, below: str | None, out: type[np.floating[Any]]) -> str:
    """Raise what has the largest score above all others, where rounding tied them.

    Where it did not, every bit stays.
    """
    if below is None:
        return probs
    zero, step = ops.constant(0.0, out), ops.constant(1 + _STEP[out], out)
    others = ops.reduce("ReduceMax", ops.add("Where", below, probs, zero))
    raised = ops.add("Max", probs, ops.add("Mul", others, step))
    return ops.add("Where", below, probs, raised)


_ROWS: dict[type, Callable[..., Rows]] = {
    Scaled: _scaled,
    Mixed: _mixed,
    ByEntropy: _by_entropy,
    Linear: _linear,
    Top1: _top1,
}
