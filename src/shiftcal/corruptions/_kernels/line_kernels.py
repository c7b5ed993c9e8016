"""Sums of many lines of one array, modulo ``2**16``."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.fixed_point_kernels import U16
from shiftcal.corruptions._kernels.inner_kernels import inlined, inner

ADD, SUBTRACT = U16(1), U16(0xFFFF)


@inner()
def sum_pairs(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    """The sum of ``source[first[k] + i] + sign * source[second[k] + i]`` over ``k``.

    Args:
        out: ``(n,)`` uint16, the result.
        source: Flat uint16.
        first: ``(k,)`` int64, where the lines begin; at least one.
        second: ``(k,)`` int64, where the others begin.
        sign: ``ADD`` or ``SUBTRACT``.
    """
    at_once = (len(first) - 1) % 3 + 1
    if at_once == 1:
        _one(out, source, first, second, sign)
    elif at_once == 2:
        _two(out, source, first, second, sign)
    else:
        _three(out, source, first, second, sign)
    for k in range(at_once, len(first), 3):
        _three_more(out, source, first[k : k + 3], second[k : k + 3], sign)


@inner()
def fill_margins(line: Any, places: Any, margin: Any) -> None:
    """Fill the first and the last ``margin`` values of a row from the ones between.

    Args:
        line: ``(n,)`` uint16.
        places: ``(n,)`` int64, where the values come from.
        margin: How many at each end.
    """
    last = len(line) - 1
    for i in range(margin):
        line[i] = line[np.uintp(places[i])]
        line[last - i] = line[np.uintp(places[last - i])]


@inlined
def _line(source: Any, start: Any, n: Any) -> Any:
    return source[start : start + n]


@inner()
def _one(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    for i in range(n):
        out[i] = U16(a[i] + U16(sign * b[i]))


@inner()
def _two(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    c, d = _line(source, first[1], n), _line(source, second[1], n)
    for i in range(n):
        out[i] = U16(U16(a[i] + c[i]) + U16(sign * U16(b[i] + d[i])))


@inner()
def _three(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    c, d = _line(source, first[1], n), _line(source, second[1], n)
    e, f = _line(source, first[2], n), _line(source, second[2], n)
    for i in range(n):
        out[i] = U16(U16(a[i] + c[i] + e[i]) + U16(sign * U16(b[i] + d[i] + f[i])))


@inner()
def _three_more(out: Any, source: Any, first: Any, second: Any, sign: Any) -> None:
    n = len(out)
    a, b = _line(source, first[0], n), _line(source, second[0], n)
    c, d = _line(source, first[1], n), _line(source, second[1], n)
    e, f = _line(source, first[2], n), _line(source, second[2], n)
    for i in range(n):
        out[i] = U16(U16(out[i] + a[i] + c[i] + e[i]) + U16(sign * U16(b[i] + d[i] + f[i])))
