"""PyTorch modules."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shiftcal._optional import require
from shiftcal.errors import InputError
from shiftcal.models._torch_forward import forward
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing


class TorchModel(Model):
    """An ``nn.Module`` that takes a batch of images and returns logits.

    It runs in evaluation mode and without gradients, on the device and in the precision of its
    parameters, and is left in the mode it was in. The number of threads is torch's own setting and
    is not touched.

    Args:
        module: The network.
        channels_last: Store batches with their channels last, which is faster on some processors;
            the shapes the network sees are the same.
        preprocessing: As for every model; by default that of ``module.preprocessing``, if it has
            one.
        **options: ``classes``, ``output`` and ``batch_size``, as for every model.
    """

    def __init__(
        self,
        module: Any,
        *,
        channels_last: bool = False,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        nn = require("torch.nn", extra="torch", needed_by="a PyTorch model")
        if not isinstance(module, nn.Module):
            raise InputError(f"module must be a torch.nn.Module; got {type(module).__name__}.")
        carried = getattr(module, "preprocessing", None)
        if preprocessing is None and isinstance(carried, Preprocessing):
            preprocessing = carried
        super().__init__(preprocessing=preprocessing, **options)
        self.module = module
        self.channels_last = channels_last

    def _forward(self, batch: NDArray[Any]) -> Any:
        return forward(self.module, batch, channels_last=self.channels_last)
