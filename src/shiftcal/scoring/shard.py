"""The unit of work: a stretch of the images under one corruption, and what a model gives for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats, Logits
from shiftcal.corruptions import Corruption


@dataclass(frozen=True)
class Condition:
    """What is done to the images of a set before the model sees them.

    Attributes:
        corruption: The corruption; ``None`` leaves them as they are.
        severity: Its strength; 0 without one.
    """

    corruption: Corruption | None = None
    severity: int = 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        if self.corruption is None:
            return "clean"
        return f"{self.corruption.name}, severity {self.severity}"


@dataclass(frozen=True)
class Shard:
    """A stretch of the images under one condition.

    Attributes:
        key: A digest of everything that decides its result.
        condition: What is done to the images first.
        start: Index of the first image.
        stop: Index after the last.
    """

    key: str
    condition: Condition
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class ShardResult:
    """What the model gave for a shard.

    Attributes:
        key: Of the shard.
        rows: Indices of the images, ``(m,)``; those that could not be read are not among them.
        logits: ``(m, k)``.
        features: ``(m, d)``, if they were asked for.
        bad: What was wrong with the images that are not among the rows, by index.
    """

    key: str
    rows: NDArray[np.int64]
    logits: Logits
    features: Floats | None = None
    bad: Mapping[int, str] = field(default_factory=dict)
