"""The contract of a feed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple


class Batch(NamedTuple):
    """What one iteration trains on, tensors in ordinary memory.

    Attributes:
        source: Inputs of the source, ``(b, ...)``, float32.
        labels: Their classes, ``(b,)``, int64.
        target: Inputs of the target, ``(b, ...)``; ``None`` if the trainer looks at none.
    """

    source: Any
    labels: Any
    target: Any


class Feed(ABC):
    """Batches by number.

    Batch ``t`` is a function of the data, the seed and ``t`` alone, whatever was asked for before:
    a training that was stopped goes on with the very batches it would have had.
    """

    @abstractmethod
    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """Batches ``first`` to ``last - 1``, in order."""
