"""What is learnt of a column: the values it has, and how far they spread."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.corruptions.tabular._kinds import Kind, as_numbers, kind_of, missing_cells

# The interquartile range of the standard normal distribution.
_NORMAL_IQR = 1.3489795003921634


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the reference rows.

    Attributes:
        label: What it is called.
        kind: What it holds.
        observed: Its values that are neither missing nor infinite, in the order of the rows.
    """

    label: Any
    kind: Kind
    observed: NDArray[Any]

    @classmethod
    def of(cls, label: Any, column: Any) -> Column:
        """What an array ``(n,)`` or a Series has to say."""
        kind = kind_of(column)
        if kind in ("float", "integer"):
            numbers = as_numbers(column)
            return cls(label, kind, numbers[np.isfinite(numbers)])
        known = np.asarray(column)[~missing_cells(column)]
        return cls(label, kind, known.copy())

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.kind in ("float", "integer")

    @cached_property
    def scale(self) -> float:
        """A robust standard deviation: the interquartile range by 1.349.

        Where half of the rows or more have one value that is 0, and the plain one is taken.
        """
        if not len(self.observed):
            return 0.0
        low, high = np.quantile(self.observed, [0.25, 0.75])
        return float(high - low) / _NORMAL_IQR or float(self.observed.std())

    @cached_property
    def typical(self) -> Any:
        """The median of numbers, rounded if they are whole; else the most frequent value.

        Of several as frequent, that which comes first.
        """
        if self.is_numeric:
            middle = float(np.median(self.observed))
            return round(middle) if self.kind == "integer" else middle
        return Counter(self.observed.tolist()).most_common(1)[0][0]
