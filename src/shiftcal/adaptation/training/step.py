"""One iteration: losses, gradients, new weights."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.feeds.base import Batch
from shiftcal.adaptation.training.optimiser import Optimiser


class Stepper:
    """Takes iterations; little more than torch's own calls, since some last less than 1 ms.

    Args:
        forward: From source, labels, target and the iteration's number to its losses.
        optimiser: Changes the weights.
        device: Where they are.
        precision: Of the forward pass, ``"bfloat16"`` or ``"float16"``; ``None`` is
            the weights' own.
    """

    def __init__(
        self, forward: Any, optimiser: Optimiser, device: Any, *, precision: str | None = None
    ) -> None:
        self._forward = forward
        self._optimiser = optimiser
        self._parameters = [p for group in optimiser.param_groups for p in group["params"]]
        self._device = device
        self._moves, self._pins = device.type != "cpu", device.type == "cuda"
        self._cast: Any = nullcontext()
        if precision is not None:
            self._cast = torch.autocast(device.type, getattr(torch, precision))
        # Small gradients are zero in float16 unless the loss is made larger.
        self._scaler = torch.amp.GradScaler(device.type) if precision == "float16" else None

    def __call__(self, batch: Batch, step: int) -> tuple[Any, Any, Any]:
        """Losses of the iteration: classification, transfer, total; tensors, not waited for."""
        source, labels, target = self._moved(batch) if self._moves else batch
        with self._cast:
            losses = self._forward(source, labels, target, step)
        for parameter in self._parameters:
            parameter.grad = None
        if self._scaler is None:
            losses.total.backward()
            self._optimiser.step(step)
        else:
            self._scaler.scale(losses.total).backward()
            self._scaler.step(self._optimiser, step)
            self._scaler.update()
        return losses.classification.detach(), losses.transfer.detach(), losses.total.detach()

    def scaling(self) -> dict[str, Any] | None:
        """How gradients are scaled, as JSON can hold it; ``None`` if they are not."""
        return None if self._scaler is None else self._scaler.state_dict()

    def restore(self, scaling: dict[str, Any] | None) -> None:
        """Go on with what :meth:`scaling` gave."""
        if self._scaler is not None and scaling is not None:
            self._scaler.load_state_dict(scaling)

    def _moved(self, batch: Batch) -> Batch:
        return Batch(*(None if one is None else self._sent(one) for one in batch))

    def _sent(self, tensor: Any) -> Any:
        # Only from pinned memory does the copy go on while the next batch is made.
        if self._pins:
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor.to(self._device)
