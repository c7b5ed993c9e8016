"""Losses whose gradient is known: value and gradient in one pass, without a graph of operations.

A step on frozen features takes about a millisecond, and every operation that autograd records
costs it several microseconds twice. Losses of many small operations therefore work their gradient
out themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shiftcal.adaptation._torch import torch

# What a rule gives: the loss, and its gradients as :func:`analytic` describes them.
Outcome = tuple[Any, Sequence[Any]]

_HALF = (torch.float16, torch.bfloat16)


def analytic(rule: Callable[..., Outcome], *inputs: Any) -> Any:
    """The value of a rule as a scalar that can be differentiated once.

    Half-precision inputs are widened to float32 first, and a surrounding autocast is left, because
    squared distances and logarithms need the digits.

    Args:
        rule: Takes the inputs and returns the loss and its gradient by each of them.
        *inputs: Tensors.
    """
    kind = inputs[0].device.type
    if inputs[0].dtype in _HALF or torch.is_autocast_enabled(kind):
        with torch.autocast(kind, enabled=False):
            return _Analytic.apply(rule, *map(widened, inputs))
    return _Analytic.apply(rule, *inputs)


def widened(x: Any) -> Any:
    """The same in float32, if it is in half precision."""
    return x.float() if x.dtype in _HALF else x


class _Analytic(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rule: Callable[..., Outcome], *inputs: Any) -> Any:
        value, ctx.gradients = rule(*inputs)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        if grad.device.type == "cpu" and grad.item() == 1:
            return None, *ctx.gradients
        return None, *(gradient * grad for gradient in ctx.gradients)
