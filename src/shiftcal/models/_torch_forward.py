"""A batch through a PyTorch module, which is left as it was."""

from __future__ import annotations

import itertools
from typing import Any

from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import InputError


def forward(module: Any, batch: NDArray[Any], *, channels_last: bool) -> NDArray[Any]:
    """Logits ``(n, k)`` in evaluation mode and without gradients, on the module's own device.

    Afterwards every part of the module is in the mode, training or not, it was in before.
    """
    torch = require("torch", extra="torch", needed_by="a PyTorch model")
    first = next(itertools.chain(module.parameters(), module.buffers()), None)
    tensor = torch.from_numpy(batch)
    if first is not None:
        tensor = tensor.to(first.device)
        if tensor.is_floating_point() and first.is_floating_point():
            tensor = tensor.to(first.dtype)
    if channels_last:
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        with torch.inference_mode():
            output = module(tensor)
    finally:
        for part, mode in modes:
            part.training = mode
    output = getattr(output, "logits", output)
    if not isinstance(output, torch.Tensor):
        raise InputError(
            "the module must return a tensor of logits, or an object with the attribute logits; "
            f"got {type(output).__name__}. Wrap it in a module that picks them out."
        )
    wide = output.dtype == torch.float64
    return output.to("cpu", torch.float64 if wide else torch.float32).numpy()
