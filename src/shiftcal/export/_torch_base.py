"""What the PyTorch modules of all formulas share.

Everything here and in its neighbours is written so that TorchScript compiles it: tensors, numbers,
and no branch on a Python object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shiftcal._optional import require

torch: Any = require("torch", extra="torch", needed_by="CalibratedModule")
nn: Any = require("torch.nn", extra="torch", needed_by="CalibratedModule")
if TYPE_CHECKING:
    Tensor = Any
else:
    Tensor = torch.Tensor


class Numbers(nn.Module):
    """A module whose buffers are float64 and stay it.

    What halves the network around it moves them to its device and leaves their digits: in half
    precision a temperature has three. Only where a device has no float64 they become float32.
    """

    def __init__(self, **numbers: Any) -> None:
        super().__init__()
        for name, value in numbers.items():
            self.register_buffer(name, torch.from_numpy(np.array(value, dtype=np.float64)))

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(one: Any) -> Any:
            try:
                made = fn(one)
            except TypeError:  # no float64 on that device
                return fn(one.float())
            return made if made.dtype == one.dtype else one.to(made.device)

        for child in self.children() if recurse else ():
            child._apply(fn)  # not what keeps digits here, or it would be kept twice
        return super()._apply(moved, recurse=False)


def less_largest(z: Tensor) -> Tensor:
    """``z - max z`` of every row, which rounds no difference between large logits."""
    return z - z.amax(1, keepdim=True)


def precise(z: Tensor) -> Tensor:
    """Logits as float64 if they are, else as float32."""
    return z if z.dtype == torch.float64 else z.to(torch.float32)


def fine_enough(z: Tensor, number: Tensor, many: bool) -> Tensor:
    """Logits in a precision that is enough for a softmax.

    Args:
        z: ``(n, k)``.
        number: A buffer, in the best precision there is.
        many: Whether there are more than few classes.
    """
    return z.to(number.dtype) if many else precise(z)


def log_of(probs: Tensor) -> Tensor:
    """Finite logarithms of probabilities, of which a zero counts as the least float32 there is."""
    return torch.log(torch.clamp(probs, min=1.1754943508222875e-38))


def keep_top(probs: Tensor, d: Tensor, like: Tensor) -> Tensor:
    """Probabilities in the precision of the logits, their largest where that of ``d`` is.

    Args:
        probs: ``(n, k)``.
        d: Scores less their largest, ``(n, k)``.
        like: The logits as given.
    """
    below = d < 0
    step = 2.220446049250313e-16
    if like.dtype != torch.float64:
        probs = probs.to(torch.float32)
        step = 1.1920928955078125e-07  # the spacing of floats at one
    others = torch.where(below, probs, torch.zeros_like(probs)).amax(1, keepdim=True)
    raised = torch.maximum(probs, others * (1.0 + step))
    return torch.where(below, probs, raised)
