"""What JPEG does to blocks of 8 x 8 values: transform, rounding to multiples, transform back.

Eight blocks go together, as 64 columns side by side in flat buffers of 8 rows, so that every loop
runs over 64 neighbouring values. Rows are transformed as columns of the transposed blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.corruptions._kernels.dct_kernels import (
    KEPT,
    PLACES,
    backward,
    forward,
    rounded,
)
from shiftcal.corruptions._kernels.inner_kernels import inlined, inner
from shiftcal.corruptions._kernels.narrow_int_kernels import add, mul, shr, sub
from shiftcal.corruptions._kernels.transpose_kernels import transpose_block

I = np.int32  # noqa: E741
TOGETHER = 8
COLUMNS = 8 * TOGETHER


@inlined
def _first_forward(samples: Any, out: Any) -> None:
    for i in range(COLUMNS):
        _put(out, i, forward(_column(samples, i)), PLACES - KEPT)
        # 128 is taken off every sample: only their sum changes.
        out[i] = sub(out[i], (8 * 128) << KEPT)


@inlined
def _middle(values: Any, out: Any, tables: Any) -> None:
    """The second pass forward, quantisation, the first pass back: all of them by column."""
    for i in range(COLUMNS):
        c = forward(_column(values, i))
        multiples = (
            _quantised(c[0], tables, i),
            _quantised(c[1], tables, COLUMNS + i),
            _quantised(c[2], tables, 2 * COLUMNS + i),
            _quantised(c[3], tables, 3 * COLUMNS + i),
            _quantised(c[4], tables, 4 * COLUMNS + i),
            _quantised(c[5], tables, 5 * COLUMNS + i),
            _quantised(c[6], tables, 6 * COLUMNS + i),
            _quantised(c[7], tables, 7 * COLUMNS + i),
        )
        _put(out, i, backward(multiples), PLACES - KEPT)


@inlined
def _quantised(coefficient: Any, tables: Any, i: Any) -> Any:
    """The multiple of the step nearest to an eighth of a coefficient, halves away from zero.

    Away from zero is up for a number that is one less if it is below zero.
    """
    value = rounded(coefficient, PLACES + KEPT)
    product = mul(add(value, shr(value, 31)), tables[1, i])
    return mul(shr(add(product, tables[2, i]), tables[3, i]), tables[0, i])


@inlined
def _last_backward(values: Any, samples: Any) -> None:
    for i in range(COLUMNS):
        y = backward(_column(values, i))
        samples[i] = _sample(y[0])
        samples[COLUMNS + i] = _sample(y[1])
        samples[2 * COLUMNS + i] = _sample(y[2])
        samples[3 * COLUMNS + i] = _sample(y[3])
        samples[4 * COLUMNS + i] = _sample(y[4])
        samples[5 * COLUMNS + i] = _sample(y[5])
        samples[6 * COLUMNS + i] = _sample(y[6])
        samples[7 * COLUMNS + i] = _sample(y[7])


@inlined
def _sample(value: Any) -> Any:
    level = add(rounded(value, PLACES + KEPT + 3), 128)
    return min(max(level, I(0)), I(255))


@inlined
def _column(values: Any, i: Any) -> Any:
    return (
        I(values[i]),
        I(values[COLUMNS + i]),
        I(values[2 * COLUMNS + i]),
        I(values[3 * COLUMNS + i]),
        I(values[4 * COLUMNS + i]),
        I(values[5 * COLUMNS + i]),
        I(values[6 * COLUMNS + i]),
        I(values[7 * COLUMNS + i]),
    )


@inlined
def _put(out: Any, i: Any, values: Any, places: Any) -> None:
    out[i] = rounded(values[0], places)
    out[COLUMNS + i] = rounded(values[1], places)
    out[2 * COLUMNS + i] = rounded(values[2], places)
    out[3 * COLUMNS + i] = rounded(values[3], places)
    out[4 * COLUMNS + i] = rounded(values[4], places)
    out[5 * COLUMNS + i] = rounded(values[5], places)
    out[6 * COLUMNS + i] = rounded(values[6], places)
    out[7 * COLUMNS + i] = rounded(values[7], places)


@inner()
def code_blocks(
    planes: Any, starts: Any, stride: Any, tables: Any, samples: Any, a: Any, b: Any
) -> None:
    """Put every block of a plane through the transform, quantisation, and back, in place.

    Args:
        planes: Flat uint8.
        starts: ``(blocks,)`` where each block's first value is.
        stride: From one row of a block to the next.
        tables: ``(4, 512)`` int32 for the 8 rows of 64 columns: the step, and multiplier,
            summand and shift that divide by 8 steps and round.
        samples: ``(512,)`` uint8, to work in.
        a: ``(512,)`` int16, to work in.
        b: ``(512,)`` int16, to work in.
    """
    for first in range(0, starts.shape[0], TOGETHER):
        here = min(TOGETHER, starts.shape[0] - first)
        for j in range(here):
            transpose_block(samples, 8 * j, COLUMNS, planes, starts[first + j], stride)
        _first_forward(samples, a)
        for j in range(TOGETHER):
            transpose_block(b, 8 * j, COLUMNS, a, 8 * j, COLUMNS)
        _middle(b, a, tables)
        for j in range(TOGETHER):
            transpose_block(b, 8 * j, COLUMNS, a, 8 * j, COLUMNS)
        _last_backward(b, samples)
        for j in range(here):
            transpose_block(planes, starts[first + j], stride, samples, 8 * j, COLUMNS)
