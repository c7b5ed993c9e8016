"""Where a training runs: which device, how many threads, and beside which other processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.errors import InputError
from shiftcal.models._torch_forward import torch_threads as cpu_threads

__all__ = ["Group", "cpu_threads", "current_group", "distributed", "resolve_device"]

# What torchrun tells the processes that it starts.
_TOLD = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# The first process writes results while the others wait; torchrun ends them if it fails.
_PATIENCE = timedelta(days=1)
# One for each time that the processes of this life meet: no meeting finds what another left.
_MEETINGS = count()


@dataclass(frozen=True)
class Group:
    """The processes that train one network together.

    Attributes:
        rank: Which one this is, from 0.
        world: How many there are.
    """

    rank: int = 0
    world: int = 1

    @property
    def main(self) -> bool:
        """Whether this is the process that writes and reports."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """Whether there is no other."""
        return self.world == 1

    def wait(self) -> None:
        """Wait until all processes are here."""
        if not self.alone:
            torch.distributed.barrier()

    def mean(self, tensor: Any) -> Any:
        """The mean of a tensor over all processes; it is overwritten with it."""
        if not self.alone:
            torch.distributed.all_reduce(tensor)
            tensor /= self.world
        return tensor

    def share(self, tensors: Iterable[Any]) -> None:
        """Give every process the first one's values."""
        if not self.alone:
            for tensor in tensors:  # parameters too, of which no gradient is wanted here
                torch.distributed.broadcast(tensor.detach(), 0)

    def told(self, value: Any) -> Any:
        """What the first process has."""
        if self.alone:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, 0)
        return box[0]

    def wrapped(self, objective: Any) -> Any:
        """What is called instead of the objective, so that gradients are means over all."""
        if self.alone:
            return objective
        from torch.nn.parallel import DistributedDataParallel

        # Static: a backbone may have parameters that nothing depends on.
        return DistributedDataParallel(objective, static_graph=True)


def current_group() -> Group:
    """The processes that this one has joined; itself alone if it has joined none."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return Group()
    return Group(distributed.get_rank(), distributed.get_world_size())


@contextmanager
def distributed(device: str = "auto") -> Iterator[Group]:
    """Join the processes that torchrun has started along with this one, if it was started so.

    They part at the end of the block, and may join again: all of them as often, in the same order.
    Processes that are joined already, by the caller's own call of torch, stay so.

    Args:
        device: Where the training will run: processes speak through NCCL if it is a GPU, else
            through Gloo.
    """
    if not all(name in os.environ for name in _TOLD) or os.environ["WORLD_SIZE"] == "1":
        yield Group()
        return
    if torch.distributed.is_initialized():
        yield current_group()
        return
    _meet(resolve_device(device))
    try:
        group = current_group()
        yield group
        group.wait()
    finally:
        torch.distributed.destroy_process_group()


def _meet(where: Any) -> None:
    if where.type == "cuda":
        torch.cuda.set_device(where)
    store, rank, world = _address(*(os.environ[name] for name in _TOLD))
    torch.distributed.init_process_group(
        "nccl" if where.type == "cuda" else "gloo",
        store=torch.distributed.PrefixStore(f"shiftcal-{next(_MEETINGS)}", store),
        rank=rank,
        world_size=world,
        timeout=_PATIENCE,
    )


@cache
def _address(*_: str) -> tuple[Any, int, int]:
    """Where processes tell each other how to be reached, which stays there; rank and world."""
    store, rank, world = next(torch.distributed.rendezvous("env://", timeout=_PATIENCE))
    return store, rank, world


def resolve_device(name: str = "auto") -> Any:
    """A device of torch.

    Args:
        name: As torch names it; ``"auto"`` is the GPU if there is one, else the processor. Of
            several GPUs it is the one of this process's number on this machine.

    Raises:
        InputError: If torch has no such device here.
    """
    if name == "auto":
        if not torch.cuda.is_available():
            return torch.device("cpu")
        name = "cuda"
    if name == "cuda":
        name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(
            f"device must be one that torch has here, or 'auto'; got {name!r}: {first}"
        ) from error
    return device
