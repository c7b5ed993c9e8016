"""Bootstrap draws of a statistic and the ends of the interval they give."""

from __future__ import annotations

import math
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


def cautious_interval(
    value: float,
    draws: NDArray[np.float64],
    calibrated: Callable[[], NDArray[np.float64]],
    *,
    level: float,
    upper: float,
) -> tuple[float, float]:
    """The reflected interval of a calibration error, each end moved out where its bias is in doubt.

    Draws of a small error lie above ``v`` by another bias than ``v`` has: a larger one where ``v``
    hardly errs upwards, a smaller one where it is noise for the most part. So with the median
    ``m`` of the draws the upper end is at least ``v + max(q_hi - m, m - q_lo)``, as if ``v`` had
    no bias, and the lower end is at most what errors that a calibrated model shows leave of ``v``:
    nothing unless ``v`` is above their :func:`rank_limit`; then ``v - limit``, which by the
    triangle inequality is below the truth, or if more ``sqrt((v - (q_hi - m))^2 - mean^2)`` with
    their mean, since an error and noise add up in squares or nearly. Where the error is plain,
    both ends are the reflected ones.

    Args:
        value: The error ``v`` of the sample itself.
        draws: ``(b,)`` its bootstrap draws.
        calibrated: Gives ``(b,)`` errors of a calibrated model; called if they matter.
        level: Coverage aimed at.
        upper: Largest value possible; the smallest is 0.
    """
    low, high = reflected_interval(value, draws, level=level, lower=0.0, upper=upper)
    tail = (1 - level) / 2
    q_low, median, q_high = np.quantile(draws, [tail, 0.5, 1 - tail]).tolist()
    high = max(high, min(value + max(q_high - median, median - q_low), upper))
    if low > 0:
        noise = calibrated()
        limit = rank_limit(noise, level=level)
        squares = max(value - (q_high - median), 0.0) ** 2 - float(noise.mean()) ** 2
        low = min(low, max(value - limit, math.sqrt(max(squares, 0.0)))) if value > limit else 0.0
    return low, high


def rank_limit(draws: NDArray[np.float64], *, level: float) -> float:
    """What a value must lie above to be too large to be one more of these draws.

    With ``b`` draws a value ``v`` is above it if ``(1 + #{draw >= v}) / (b + 1)``, the rank test's
    p-value, is at most ``(1 - level) / 2``. Of too few draws no value is: the limit is infinite.
    """
    allowed = (1 - level) / 2 * (len(draws) + 1)
    exceeded = int(allowed + 1e-9)  # rounding must not cost a whole rank
    return float(np.sort(draws)[-exceeded]) if exceeded else math.inf
