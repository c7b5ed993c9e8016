"""The mean of a few repetitions, and how far the mean of many may be from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class MeanInterval(NamedTuple):
    """A mean and the ends of an interval around it.

    Attributes:
        mean: Of the values.
        low: Lower end; None if one value says nothing of the spread.
        high: Upper end, None where ``low`` is.
    """

    mean: float
    low: float | None
    high: float | None


def mean_interval(values: Iterable[float], *, level: float = 0.95) -> MeanInterval:
    """Student's interval for the mean of independent repetitions.

    ``mean ± t s / sqrt(n)`` with s the standard deviation (n - 1 below) and t the quantile
    ``(1 + level) / 2`` of Student's distribution of n - 1 degrees of freedom. It holds the true
    mean with probability ``level`` if the repetitions are independent and near normal; splits
    that share images are not quite independent, and for them it is somewhat narrow.
    The order of the values does not matter to the last bit.

    Args:
        values: ``(n,)`` finite, at least one.
        level: Between 0 and 1.

    Raises:
        ValueError: If there is no value, one is not finite, or the level is out of range.
    """
    numbers = [float(value) for value in values]
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(
            f"values must be at least one, all finite; got {numbers}. "
            "Leave out the repetitions that gave no number, and say so."
        )
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level}. For 95 % pass 0.95.")
    n = len(numbers)
    # Equal numbers have a mean that rounding may put beside all of them.
    mean = min(max(math.fsum(numbers) / n, min(numbers)), max(numbers))
    if n == 1:
        return MeanInterval(mean, None, None)
    from scipy.special import stdtrit

    variance = math.fsum((number - mean) ** 2 for number in numbers) / (n - 1)
    half = float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(variance / n)
    return MeanInterval(mean, mean - half, mean + half)
