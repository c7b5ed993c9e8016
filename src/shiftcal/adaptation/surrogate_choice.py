"""Which harder sets a run makes of its calibration images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftcal._checks import check_count
from shiftcal.corruptions import Corruption, as_corruption
from shiftcal.errors import InputError


@dataclass(frozen=True)
class SurrogateChoice:
    """One corruption at some severities.

    Attributes:
        corruption: What makes them.
        severities: How much of it, in rising order.
    """

    corruption: Corruption
    severities: tuple[int, ...]

    @classmethod
    def of(cls, corruption: object, severities: Sequence[int]) -> SurrogateChoice:
        """The same, checked.

        Args:
            corruption: A name, a corruption or a function, as for :func:`shiftcal.corrupt`.
            severities: One at least.

        Raises:
            InputError: If there is no such severity, or none is named.
        """
        made = as_corruption(corruption)
        levels = {check_count(level, name="severity", most=made.severities) for level in severities}
        if not levels:
            raise InputError("severities must name one at least, such as 1, 2, 3, 4, 5.")
        return cls(made, tuple(sorted(levels)))
