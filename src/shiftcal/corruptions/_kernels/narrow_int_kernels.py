"""Arithmetic of whole numbers of 32 and 16 bits that stays one of 32 and 16 bits.

numba adds and multiplies in 64 bits, and the compiler keeps them where it cannot rule out that it
matters, and where it sees that it does not: half or a quarter as many values at a time. These are
the processor's narrow instructions themselves; what does not fit wraps around.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic


def _instruction(name: str) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return getattr(builder, name)(*args)

    def typed(context: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        kind = types.int16 if a == types.int16 else types.int32
        return kind(kind, kind), code

    typed.__doc__ = f"Instruction {name!r}: of 16 bits if the first number is, of 32 otherwise."
    typed.__name__ = name
    return intrinsic(typed)


add = _instruction("add")
sub = _instruction("sub")
mul = _instruction("mul")
shl = _instruction("shl")
shr = _instruction("ashr")
