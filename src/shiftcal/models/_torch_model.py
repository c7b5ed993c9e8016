"""What a PyTorch module and a TorchScript file have in common as models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shiftcal._checks import check_count
from shiftcal.models._torch_forward import device_of, leaving_room, memory_of, torch_engine
from shiftcal.models.base import Model


class TorchNetwork(Model):
    """A network that torch runs, on the device of its parameters.

    Attributes:
        module: The network.
        channels_last: Whether batches are stored with their channels last.
        threads: How many threads torch may use; ``None`` leaves that to torch.
    """

    module: Any
    channels_last: bool
    threads: int | None

    @property
    def engine(self) -> str:
        """``torch``, its version, the device if it is not the processor, and the layout."""
        return torch_engine(device_of(self.module), channels_last=self.channels_last)

    @property
    def measured_memory(self) -> str | None:
        """The device of the parameters, where torch or the system can say what it holds."""
        return memory_of(self.module)

    def use_threads(self, threads: int) -> None:
        """Let torch use so many threads while the network runs."""
        self.threads = check_count(threads, name="threads")

    @contextmanager
    def sharing(self, processors: int) -> Iterator[None]:
        """Leave a processor to the others, unless a number of threads was said."""
        with leaving_room(self, processors, device=device_of(self.module)):
            yield
