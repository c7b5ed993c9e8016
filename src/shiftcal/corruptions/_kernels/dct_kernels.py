"""The discrete cosine transform of 8 values in whole numbers, forward and back.

The factorisation of Loeffler, Ligtenberg and Moschytz (1989) with the constants at 13 binary
places: what the reference codec of JPEG calls the accurate integer method. A transform of a block
is two passes; between them two more binary places are kept. Results are ``sqrt(8)`` times those of
the orthonormal transform in each pass.
"""

from __future__ import annotations

from typing import Any

from shiftcal.corruptions._kernels.inner_kernels import inlined
from shiftcal.corruptions._kernels.narrow_int_kernels import add, mul, shl, shr, sub

PLACES = 13  # of the constants below
KEPT = 2  # of the values between the passes


@inlined
def rounded(value: Any, places: Any) -> Any:
    """``value`` without its last binary ``places``, half a unit rounded up."""
    return shr(add(value, 1 << (places - 1)), places)


@inlined
def _turn(low: Any, high: Any) -> Any:
    """Two values turned by 3 pi / 8 and stretched by ``sqrt(2)``."""
    both = mul(add(low, high), 4433)
    return add(both, mul(low, 6270)), sub(both, mul(high, 15137))


@inlined
def _odd(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The four odd values, in either direction: the matrix is its own transpose."""
    shared = mul(add(add(a, c), add(b, d)), 9633)
    far0 = sub(shared, mul(add(a, c), 16069))
    far1 = sub(shared, mul(add(b, d), 3196))
    near0 = mul(add(a, d), -7373)
    near1 = mul(add(b, c), -20995)
    return (
        add(add(mul(a, 2446), near0), far0),
        add(add(mul(b, 16819), near1), far1),
        add(add(mul(c, 25172), near1), far0),
        add(add(mul(d, 12299), near0), far1),
    )


@inlined
def forward(x: Any) -> Any:
    """Eight values to coefficients with ``PLACES`` more binary places."""
    e0, e1, e2, e3 = add(x[0], x[7]), add(x[1], x[6]), add(x[2], x[5]), add(x[3], x[4])
    o0, o1, o2, o3 = sub(x[0], x[7]), sub(x[1], x[6]), sub(x[2], x[5]), sub(x[3], x[4])
    s0, s1 = add(e0, e3), add(e1, e2)
    c0, c4 = shl(add(s0, s1), PLACES), shl(sub(s0, s1), PLACES)
    c2, c6 = _turn(sub(e0, e3), sub(e1, e2))
    c7, c5, c3, c1 = _odd(o3, o2, o1, o0)
    return c0, c1, c2, c3, c4, c5, c6, c7


@inlined
def backward(c: Any) -> Any:
    """Eight coefficients to values with ``PLACES`` more binary places."""
    up, down = _turn(c[2], c[6])
    s0, s1 = shl(add(c[0], c[4]), PLACES), shl(sub(c[0], c[4]), PLACES)
    e0, e1, e2, e3 = add(s0, up), add(s1, down), sub(s1, down), sub(s0, up)
    o3, o2, o1, o0 = _odd(c[7], c[5], c[3], c[1])
    first = add(e0, o0), add(e1, o1), add(e2, o2), add(e3, o3)
    return (*first, sub(e3, o3), sub(e2, o2), sub(e1, o1), sub(e0, o0))
