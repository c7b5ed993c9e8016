"""The nouns that travel between stages. Data only; nothing here computes or checks.

Letters used everywhere: ``n`` samples, ``k`` classes, ``j`` surrogate sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.floating[Any]]
Logits: TypeAlias = NDArray[np.floating[Any]]  # (n, k), any float dtype, finite
Probs: TypeAlias = NDArray[np.float64]  # (n, k), rows sum to one
Confidence: TypeAlias = NDArray[np.floating[Any]]  # (n,), in [0, 1]
Correct: TypeAlias = NDArray[np.bool_]  # (n,)
Labels: TypeAlias = NDArray[np.intp]  # (n,), in 0..k-1
Images: TypeAlias = NDArray[np.uint8]  # (n, height, width, 3), red green blue
Weights: TypeAlias = NDArray[np.float64]  # (n,), >= 0, some > 0

InputKind: TypeAlias = Literal["logits", "probabilities"]


@dataclass(frozen=True)
class Flag:
    """Something a method noticed while adapting, for people and for programs.

    Attributes:
        code: A stable word such as ``"outside-range"``.
        message: The same in a sentence, with the numbers.
    """

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Interval:
    """A value with the interval around it.

    Attributes:
        value: The estimate on the whole sample.
        low: Lower end.
        high: Upper end.
        level: Coverage aimed at, such as 0.95.
    """

    value: float
    low: float
    high: float
    level: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"
