"""The same sums in the same order, on a GPU too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shiftcal.adaptation._torch import torch

# What cuBLAS must be told before it is first used: room of its own for every stream.
_ROOM = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@contextmanager
def deterministic(device: Any) -> Iterator[None]:
    """Have CUDA compute the same numbers every time, where torch has a way to.

    Torch warns of every operation for which it has none. Whoever has asked torch for this already
    is left with what they asked for, as are other devices, for which there is nothing to set.

    Args:
        device: Where the training runs.
    """
    if device.type != "cuda" or torch.are_deterministic_algorithms_enabled():
        yield
        return
    os.environ.setdefault(*_ROOM)
    cudnn, memory = torch.backends.cudnn, torch.utils.deterministic
    before = cudnn.benchmark, memory.fill_uninitialized_memory
    # Which algorithm is the fastest differs from run to run; memory is written before it is read.
    cudnn.benchmark, memory.fill_uninitialized_memory = False, False
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        cudnn.benchmark, memory.fill_uninitialized_memory = before
