"""Weighted sums in 16-bit fixed point, sixteen values at a time.

A product of two 16-bit numbers of which only the upper half is kept is one instruction for a whole
register, while the same written with wider integers is four; numba has no word for it, so it is
said in the compiler's own language. The result is an integer, the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from shiftcal.corruptions._kernels.inner_kernels import inlined, inner

U16 = np.uint16


@intrinsic
def upper_half(_typing: Any, _a: Any, _b: Any) -> Any:
    """``a * b >> 16`` of two uint16."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        half, word = ir.IntType(16), ir.IntType(32)
        kind = ir.FunctionType(half, [half, half, word])
        product = builder.module.declare_intrinsic("llvm.umul.fix", [half], kind)
        return builder.call(product, [*args, ir.Constant(word, 16)])

    return types.uint16(types.uint16, types.uint16), generate


@inner()
def weighted_sum(out: Any, source: Any, centre: int, step: int, weights: Any, bias: Any) -> None:
    """Correlate a line with a symmetric kernel.

    ``out[i] = bias + sum_k (source[c + i - k step] + source[c + i + k step]) weights[k] >> 16``,
    each term cut by itself; ``k`` runs from 0, so that the centre counts twice. Sums of two
    values and the result must fit 16 bits.

    Args:
        out: ``(n,)`` uint16.
        source: Flat uint16.
        centre: Where the value for ``out[0]`` is in ``source``.
        step: The distance between neighbours.
        weights: ``(r + 1,)`` uint16.
        bias: What is added, uint16.
    """
    radius = len(weights) - 1
    first = (radius - 1) % 3 + 1 if radius > 0 else 0
    if first == 0:
        _centre(out, source, centre, weights, bias)
    elif first == 1:
        _centre_and_one(out, source, centre, step, weights, bias)
    elif first == 2:
        _centre_and_two(out, source, centre, step, weights, bias)
    else:
        _centre_and_three(out, source, centre, step, weights, bias)
    for k in range(first + 1, radius + 1, 3):
        _three_more(out, source, centre, k * step, step, weights[k : k + 3])


# No loop below reads from more than seven places: beyond eight the compiler gives up proving that
# they do not overlap what is written, and works on one value at a time.


@inlined
def _line(source: Any, start: Any, n: Any) -> Any:
    return source[start : start + n]


@inner()
def _centre(out: Any, source: Any, c: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0 = _line(source, c, n), weights[0]
    for i in range(n):
        out[i] = U16(bias + upper_half(U16(x[i] + x[i]), w0))


@inner()
def _centre_and_one(out: Any, source: Any, c: Any, step: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0, w1 = _line(source, c, n), weights[0], weights[1]
    a1, b1 = _line(source, c - step, n), _line(source, c + step, n)
    for i in range(n):
        out[i] = U16(bias + upper_half(U16(x[i] + x[i]), w0) + upper_half(U16(a1[i] + b1[i]), w1))


@inner()
def _centre_and_two(out: Any, source: Any, c: Any, step: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0, w1, w2 = _line(source, c, n), weights[0], weights[1], weights[2]
    a1, b1 = _line(source, c - step, n), _line(source, c + step, n)
    a2, b2 = _line(source, c - 2 * step, n), _line(source, c + 2 * step, n)
    for i in range(n):
        out[i] = U16(
            bias
            + upper_half(U16(x[i] + x[i]), w0)
            + upper_half(U16(a1[i] + b1[i]), w1)
            + upper_half(U16(a2[i] + b2[i]), w2)
        )


@inner()
def _centre_and_three(out: Any, source: Any, c: Any, step: Any, weights: Any, bias: Any) -> None:
    n = len(out)
    x, w0, w1, w2, w3 = _line(source, c, n), weights[0], weights[1], weights[2], weights[3]
    a1, b1 = _line(source, c - step, n), _line(source, c + step, n)
    a2, b2 = _line(source, c - 2 * step, n), _line(source, c + 2 * step, n)
    a3, b3 = _line(source, c - 3 * step, n), _line(source, c + 3 * step, n)
    for i in range(n):
        out[i] = U16(
            bias
            + upper_half(U16(x[i] + x[i]), w0)
            + upper_half(U16(a1[i] + b1[i]), w1)
            + upper_half(U16(a2[i] + b2[i]), w2)
            + upper_half(U16(a3[i] + b3[i]), w3)
        )


@inner()
def _three_more(out: Any, source: Any, c: Any, far: Any, step: Any, weights: Any) -> None:
    n = len(out)
    w1, w2, w3 = weights[0], weights[1], weights[2]
    a1, b1 = _line(source, c - far, n), _line(source, c + far, n)
    a2, b2 = _line(source, c - far - step, n), _line(source, c + far + step, n)
    a3, b3 = _line(source, c - far - 2 * step, n), _line(source, c + far + 2 * step, n)
    for i in range(n):
        out[i] = U16(
            out[i]
            + upper_half(U16(a1[i] + b1[i]), w1)
            + upper_half(U16(a2[i] + b2[i]), w2)
            + upper_half(U16(a3[i] + b3[i]), w3)
        )
