"""Bootstrap draws of a statistic and the interval they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def draws(
    statistic: Callable[[NDArray[np.int64]], float], *, n: int, n_resamples: int, seed: int
) -> NDArray[np.float64]:
    """The statistic of ``n_resamples`` samples of ``n`` rows drawn with replacement.

    Args:
        statistic: Takes the indices ``(n,)`` of the rows drawn.
        n: Number of rows.
        n_resamples: Number of draws.
        seed: Fixes them all.
    """
    rng: Any = np.random.default_rng(seed)
    return np.array([statistic(rng.integers(0, n, size=n)) for _ in range(n_resamples)])


def reflected_interval(
    value: float, draws: NDArray[np.float64], *, level: float, lower: float, upper: float
) -> tuple[float, float]:
    """``[2v - q_hi, 2v - q_lo]``, cut to the metric's range and widened to hold ``v``.

    A draw errs from ``v`` as ``v`` errs from the truth, bias included, so the quantiles ``q`` of
    the draws are reflected at ``v``: a metric that comes out too high on a finite sample gets an
    interval that lies lower, where the percentile interval would move up once more.

    Args:
        value: The statistic ``v`` of the sample itself.
        draws: ``(b,)`` its bootstrap draws.
        level: Coverage aimed at.
        lower: Smallest value possible.
        upper: Largest value possible.
    """
    q_low, q_high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    low = min(max(2 * value - float(q_high), lower), value)
    high = max(min(2 * value - float(q_low), upper), value)
    return low, high
