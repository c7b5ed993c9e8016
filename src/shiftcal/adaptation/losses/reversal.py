"""Gradient reversal: what comes after descends, what comes before climbs."""

from __future__ import annotations

import math
from typing import Any

from shiftcal.adaptation._torch import torch


def reverse(x: Any, coefficient: float) -> Any:
    """``x`` itself, whose gradient is multiplied with ``-coefficient`` on its way back.

    It commutes with every linear map: put it where the tensor is smallest.

    Args:
        x: Any tensor.
        coefficient: How strongly what comes before works against what comes after; 0 cuts them
            apart.
    """
    return _Reverse.apply(x, coefficient)


def warm_start(
    step: int, *, hi: float = 1.0, lo: float = 0.0, alpha: float = 1.0, max_iters: int = 1000
) -> float:
    """A coefficient that grows with the iterations, ``lo`` at 0 and ``hi`` in the end.

    ``2 (hi - lo) / (1 + exp(-alpha step / max_iters)) - (hi - lo) + lo``, which is
    ``lo + (hi - lo) tanh(alpha step / (2 max_iters))``.

    Args:
        step: Which iteration this is, from 0.
        hi: The value it tends to.
        lo: The value it starts with.
        alpha: How fast it grows.
        max_iters: The iterations ``alpha`` is counted in.
    """
    return lo + (hi - lo) * math.tanh(0.5 * alpha * step / max_iters)


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, coefficient: float) -> Any:
        ctx.factor = -coefficient
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None
