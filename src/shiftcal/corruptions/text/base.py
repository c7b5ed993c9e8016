"""The contract of a corruption of texts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shiftcal.corruptions._input_corruption import InputCorruption
from shiftcal.corruptions._rising import check_strengths
from shiftcal.corruptions.text._texts import checked_texts, put_back


class TextCorruption(InputCorruption):
    """Texts made harder to classify. A strength is the share of what is hit, at most 1.

    A new corruption is one file in this package: a final subclass with ``defaults`` for its
    strengths and with ``_altered``. Texts are a list, a tuple, an array or a Series of text, and
    come out as the same.

    Args:
        strengths: One for each severity, rising; what they are shares of is said with each class.

    Attributes:
        defaults: Strengths of the five severities.
    """

    defaults: ClassVar[tuple[float, ...]]

    def __init__(self, *, strengths: Sequence[float] | None = None) -> None:
        self.strengths = check_strengths(self.defaults if strengths is None else strengths, most=1)

    def _apply(self, inputs: Any, severity: int, *, seed: int, first_index: int) -> Any:
        texts = checked_texts(inputs)
        streams = self._streams(len(texts), severity, seed=seed, first_index=first_index)
        strength = self.strengths[severity - 1]
        made = [
            self._altered(text, strength, np.random.default_rng(int(key)))
            for text, key in zip(texts, streams, strict=True)
        ]
        return put_back(made, inputs)

    @abstractmethod
    def _altered(self, text: str, strength: float, rng: np.random.Generator) -> str:
        """One text, corrupted; ``rng`` is its own."""
