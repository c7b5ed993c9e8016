"""Random numbers of the network itself: initial weights and dropout.

Torch draws them from generators of the whole process. They are set from the seed and the number of
the iteration, so that a stopped training goes on with the very numbers it would have had, and are
given back as they were found.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shiftcal.adaptation._torch import torch

_WEIGHTS, _STEPS = 1, 2
_64 = 2**64 - 1


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have initial weights drawn in the block follow from a seed; they must be on the processor."""
    with kept_generators(torch.device("cpu")):
        torch.default_generator.manual_seed(_mixed(_mixed(seed) + _WEIGHTS))
        yield


@contextmanager
def kept_generators(device: Any) -> Iterator[None]:
    """Leave torch's generators as they were, whatever is drawn meanwhile."""
    generators = _generators(device)
    before = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)


class StepSeeds:
    """Sets torch's generators for an iteration.

    Args:
        seed: Of the training.
        device: Where it runs.
        rank: Which process this is; each has its own numbers.
    """

    def __init__(self, seed: int, device: Any, *, rank: int = 0) -> None:
        self._base = _mixed(_mixed(_mixed(seed) + _STEPS) + rank)
        self._generators = _generators(device)

    def set(self, step: int) -> None:
        """Everything random from now on follows from the seed and the number ``step``."""
        number = _mixed(self._base + step)
        # Not torch.manual_seed, which asks every kind of device and takes as long as a step.
        for generator in self._generators:
            generator.manual_seed(number)


class _OfModule:
    """The generator of a kind of device that has one, with the names of torch's class.

    Args:
        module: Torch's for that kind, such as ``torch.mps``.
    """

    def __init__(self, module: Any) -> None:
        self.get_state = module.get_rng_state
        self.set_state = module.set_rng_state
        self.manual_seed = module.manual_seed


def _generators(device: Any) -> list[Any]:
    """Those that networks on a device draw from: the processor's, and its own."""
    module: Any = None if device.type == "cpu" else getattr(torch, device.type, None)
    if hasattr(module, "default_generators"):
        module.init()
        index = module.current_device() if device.index is None else device.index
        return [torch.default_generator, module.default_generators[index]]
    if hasattr(module, "manual_seed"):
        return [torch.default_generator, _OfModule(module)]
    return [torch.default_generator]


def _mixed(number: int) -> int:
    """A number of 64 bits of which each follows from all of the given one's (SplitMix64)."""
    z = (number + 0x9E3779B97F4A7C15) & _64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64
    return z ^ (z >> 31)
