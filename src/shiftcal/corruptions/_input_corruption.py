"""The contract of a corruption of inputs that are not images: rows, texts, anything in order."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions._keys import key_bits, stream_keys


class InputCorruption(ABC):
    """Inputs made harder to classify, at severity 1 and up; severity 0 leaves them as they are.

    Guarantees, checked by the contract tests: as many inputs come out as went in, in the same kind
    of container; the input is unchanged; what is done to an input depends on the input, the
    strength, and its random stream, which is made of seed, name, severity and index: never on the
    inputs beside it.

    Attributes:
        strengths: One for each severity; what they mean is said with each class.
        may_lose_values: Whether cells can be missing afterwards, which some models cannot take.
    """

    strengths: tuple[float, ...]
    may_lose_values: bool = False

    @property
    def name(self) -> str:
        """What it is called in tables and messages: its file, or else its class."""
        package, _, file = type(self).__module__.rpartition(".")
        if package.startswith("shiftcal.corruptions."):
            return file
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def severities(self) -> int:
        """The highest severity; the lowest that changes anything is 1."""
        return len(self.strengths)

    @property
    def description(self) -> str:
        """The name, with the strengths."""
        return f"{self.name} {self.strengths}"

    def __repr__(self) -> str:
        return f"<corruption {self.description}>"

    def fitted_to(self, inputs: Any) -> Self:
        """One that is ready for use: itself, unless it has to learn from inputs and has not."""
        return self

    @abstractmethod
    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        """Corrupted copies of inputs.

        Args:
            inputs: One or more; not to be changed.
            severity: At least 1.
            seed: Fixes the random numbers.
            first_index: Index of the first input.
        """

    def _streams(
        self, count: int, severity: int, *, seed: int, first_index: int
    ) -> NDArray[np.uint64]:
        """The key of every input's random stream, ``(count,)``."""
        indices = np.arange(first_index, first_index + count, dtype=np.int64)
        keys = stream_keys(seed=seed, corruption=self.name, severity=severity, indices=indices)
        return key_bits(keys)
