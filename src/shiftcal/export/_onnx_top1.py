"""Maps on the confidence of the predicted class as nodes of an ONNX graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftcal.export._formula import BetaCurve, Table
from shiftcal.export._onnx_ops import Ops
from shiftcal.numerics.top1.rows import LEAST_SHARE, MARGIN, lowest_top1

_DECIMALS = 1e12


def predicted(ops: Ops, z: str, k: int) -> str:
    """True for the first largest of every row ``(n, k)``, and for it alone."""
    first = ops.add("ArgMax", z, axis=1, keepdims=1)
    return ops.add("Equal", ops.constant(np.arange(k)[None], np.int64), first)


def log_odds(ops: Ops, d: str, of_row: str) -> str:
    """``log(c / (1 - c))`` of every row ``(n, 1)``, ``d`` being logits less their largest."""
    others = ops.add("Where", of_row, ops.constant(-np.inf), d)
    second = ops.reduce("ReduceMax", others)
    total = ops.reduce("ReduceSum", ops.add("Exp", ops.add("Sub", others, second)))
    return ops.add("Neg", ops.add("Add", second, ops.add("Log", total)))


def top1_confidence(ops: Ops, odds: str, curve: Table | BetaCurve) -> str:
    """What a curve makes of log-odds ``(n, 1)``."""
    if isinstance(curve, BetaCurve):
        return _beta(ops, odds, curve)
    scaled = ops.add("Mul", _sigmoid(ops, odds), ops.constant(_DECIMALS))
    c = ops.add("Div", ops.rounded(scaled), ops.constant(_DECIMALS))
    place = _count_below(ops, c, curve.edges)
    start, base, slope = (
        ops.add("Gather", ops.constant(values), place)
        for values in (curve.start, curve.base, curve.slope)
    )
    return ops.add("Add", base, ops.add("Mul", slope, ops.add("Sub", c, start)))


def _beta(ops: Ops, odds: str, curve: BetaCurve) -> str:
    x = ops.add("Min", odds, ops.constant(curve.farthest))
    # -log c, and -log(1 - c) is that plus the log-odds.
    of_one = ops.add("Log", ops.add("Add", ops.add("Exp", ops.add("Neg", x)), ops.constant(1.0)))
    of_zero = ops.add("Mul", ops.add("Add", x, of_one), ops.constant(curve.b))
    lost = ops.add("Mul", of_one, ops.constant(curve.a))
    made = ops.add("Add", ops.add("Sub", of_zero, lost), ops.constant(curve.m))
    return _sigmoid(ops, made)


def _sigmoid(ops: Ops, x: str) -> str:
    one = ops.constant(1.0)
    return ops.add("Div", one, ops.add("Add", ops.add("Exp", ops.add("Neg", x)), one))


def _count_below(ops: Ops, x: str, edges: NDArray[np.float64]) -> str:
    """How many edges are less than ``x``, by bisection: the memory of a row is one number."""
    place = ops.add("Mul", ops.cast(x, np.int64), ops.constant(0, np.int64))
    bits = len(edges).bit_length()
    if bits == 0:
        return place
    padded = ops.constant(np.concatenate([edges, np.full((1 << bits) - 1 - len(edges), np.inf)]))
    for bit in reversed(range(bits)):
        last = ops.add("Add", place, ops.constant((1 << bit) - 1, np.int64))
        less = ops.add("Less", ops.add("Gather", padded, last), x)
        further = ops.add("Add", place, ops.constant(1 << bit, np.int64))
        place = ops.add("Where", less, further, place)
    return place


def shared_rows(ops: Ops, d: str, of_row: str, *, confidence: str) -> str:
    """Rows whose predicted class has the confidence ``(n, 1)``, the rest shared by the others.

    As :func:`shiftcal.numerics.top1.rows.rows_with_top1` has it, with the search for the scale in
    every row: where nothing is capped, it ends at the first place.
    """
    at_least = ops.add("Max", confidence, ops.constant(lowest_top1(ops.k)))
    c = ops.add("Min", at_least, ops.constant(1.0))
    others = ops.add("Where", of_row, ops.constant(-np.inf), d)
    shares = ops.add("Exp", ops.add("Sub", others, ops.reduce("ReduceMax", others)))
    shares = ops.add("Max", shares, ops.constant(LEAST_SHARE))
    shares = ops.add("Where", of_row, ops.constant(0.0), shares)
    rest = ops.add("Sub", ops.constant(1.0), c)
    cap = ops.add("Mul", c, ops.constant(1.0 - MARGIN))
    scale = _capped_scale(ops, shares, rest=rest, cap=cap)
    capped = ops.add("Min", ops.add("Mul", shares, scale), cap)
    return ops.add("Where", of_row, c, capped)


def _capped_scale(ops: Ops, shares: str, *, rest: str, cap: str) -> str:
    """The scale at which ``sum min(cap, scale * share)`` is ``rest``, ``(n, 1)``."""
    n_others = ops.k - 1
    falling = ops.largest(shares, n_others)  # all but the predicted class, worth 0
    places = np.arange(n_others)
    taken = ops.add("Mul", ops.constant(places[None]), cap)
    left = ops.add("Sub", rest, taken)
    scales = ops.add("Div", left, ops.sums_from_the_end(falling, n_others))
    over = ops.add("Less", cap, ops.add("Mul", scales, falling))
    # The last always counts: at the lowest confidence all are at the cap, give or take rounding.
    fits = ops.add(
        "Or", ops.add("Not", over), ops.constant((places == n_others - 1)[None], np.bool_)
    )
    first = predicted(ops, ops.cast(fits, np.float32), n_others)
    return ops.reduce("ReduceSum", ops.add("Where", first, scales, ops.constant(0.0)))
