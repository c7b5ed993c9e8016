"""Rows and columns of a block of 8 x 8 values exchanged, eight values at a time.

numba turns the plain double loop into single loads and stores, six times slower than this. The
few vector instructions written out here are LLVM's own, which it translates for every processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

_SIDE = 8
# Lanes of two rows taken in turn. Done three times to rows i and i + 4, this is the transpose.
_FIRST_HALVES = (0, 8, 1, 9, 2, 10, 3, 11)
_SECOND_HALVES = (4, 12, 5, 13, 6, 14, 7, 15)


@intrinsic
def transpose_block(
    context: Any,  # noqa: ARG001
    out: Any,
    out_start: Any,  # noqa: ARG001
    out_stride: Any,  # noqa: ARG001
    values: Any,
    start: Any,  # noqa: ARG001
    stride: Any,  # noqa: ARG001
) -> Any:
    """Write ``values[start + stride * i + j]`` to ``out[out_start + out_stride * j + i]``.

    Both are flat contiguous arrays of one integer type; ``i`` and ``j`` go from 0 to 7. They may
    be the same array only where the blocks are the same too.
    """
    place = types.intp
    return types.void(out, place, place, values, place, place), _transpose_code


def _transpose_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    out, out_start, out_stride, values, start, stride = args
    rows = [
        builder.load(pointer, align=1)
        for pointer in _rows(context, builder, signature.args[3], (values, start, stride))
    ]
    for _ in range(3):
        rows = [
            builder.shuffle_vector(rows[i], rows[i + 4], _lanes(order))
            for i in range(_SIDE // 2)
            for order in (_FIRST_HALVES, _SECOND_HALVES)
        ]
    pointers = _rows(context, builder, signature.args[0], (out, out_start, out_stride))
    for row, pointer in zip(rows, pointers, strict=True):
        builder.store(row, pointer, align=1)
    return context.get_dummy_value()


def _rows(context: Any, builder: Any, kind: Any, place: tuple[Any, Any, Any]) -> list[Any]:
    """Pointers to the eight rows of a block, each a vector of eight values."""
    array, start, stride = place
    data = context.make_array(kind)(context, builder, array).data
    row = ir.VectorType(context.get_data_type(kind.dtype), _SIDE).as_pointer()
    indices = [
        builder.add(start, builder.mul(stride, ir.Constant(stride.type, i))) for i in range(_SIDE)
    ]
    return [builder.bitcast(builder.gep(data, [index]), row) for index in indices]


def _lanes(order: tuple[int, ...]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), _SIDE), list(order))
