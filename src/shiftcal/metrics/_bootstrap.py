"""Bootstrap intervals for any metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count, check_fraction
from shiftcal._types import Interval
from shiftcal.errors import InputError
from shiftcal.metrics.base import Facts, check_full, check_top1
from shiftcal.numerics.bootstrap import cautious_interval, draws, reflected_interval


def bootstrap(
    metric: Callable[..., float],
    first: object,
    second: object,
    *,
    n_resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> Interval:
    """A metric with its bootstrap interval: ``bootstrap(ece, confidence, correct)``.

    Rows are drawn with replacement ``n_resamples`` times. The interval is the reflected (basic)
    one, ``[2v - q_hi, 2v - q_lo]`` for the value ``v`` and the quantiles ``q`` of the draws. A
    binned calibration error is too high on a finite sample, and a resample is too high once more;
    reflection takes that off where percentiles would count it twice. What falls outside the
    metric's range is cut, and the interval always holds ``v``.

    How much too high is in doubt where a calibration error is small, so its ends err to the side
    of caution. The upper end is at least ``v`` plus the spread of the draws, no bias taken off.
    The lower end heeds what a calibrated model would show: truths are drawn as the predictions
    say, ``n_resamples`` times, and it is 0 unless ``v`` is above those draws by a rank test,
    ``(1 + #{draw >= v}) / (n_resamples + 1) <= (1 - level) / 2``. So a lower end above 0 is
    evidence of miscalibration at the level asked for; at 0.95 that takes 39 draws or more.
    :func:`shiftcal.metrics.debiased_ece` says how much of a value is error.

    Args:
        metric: A metric of this package.
        first: Its first array: confidence ``(n,)`` or probs ``(n, k)``.
        second: Its second array: correct or labels ``(n,)``.
        n_resamples: Number of draws.
        level: Coverage aimed at, strictly between 0 and 1.
        seed: Fixes the draws: the same seed gives the same interval.
        **options: Passed on to the metric, such as ``n_bins``.

    Raises:
        InputError: If the arrays or options cannot be used.
    """
    facts = getattr(metric, "facts", None)
    if not isinstance(facts, Facts):
        raise InputError(
            f"metric must be one of shiftcal's metric functions, such as shiftcal.ece; "
            f"got {metric!r}. A metric known by name is shiftcal.metrics.get(name)."
        )
    check_count(n_resamples, name="n_resamples", least=2)
    check_count(seed, name="seed", least=0)
    check_fraction(level, name="level")
    a, b = check_top1(first, second) if facts.reads == "top1" else check_full(first, second)
    value = metric(a, b, **options)
    drawn = draws(
        _statistic(metric, facts, (a, b), options), n=len(b), n_resamples=n_resamples, seed=seed
    )
    if facts.calibration:
        noise = partial(_if_calibrated, metric, a, n_resamples=n_resamples, seed=seed, **options)
        low, high = cautious_interval(value, drawn, noise, level=level, upper=facts.upper)
    else:
        low, high = reflected_interval(
            value, drawn, level=level, lower=facts.lower, upper=facts.upper
        )
    return Interval(value=value, low=low, high=high, level=float(level))


def _if_calibrated(
    metric: Callable[..., float],
    first: NDArray[Any],
    *,
    n_resamples: int,
    seed: int,
    **options: Any,
) -> NDArray[np.float64]:
    """The metric of the same predictions with truths drawn as they say, many times over."""
    rng = np.random.default_rng([seed, 1])
    cumulative = first.cumsum(axis=1) if first.ndim == 2 else None

    def truth() -> NDArray[Any]:
        if cumulative is None:
            return rng.random(len(first)) < first
        labels = (cumulative < rng.random((len(first), 1))).sum(axis=1)
        return np.minimum(labels, first.shape[1] - 1)

    return np.array([metric(first, truth(), **options) for _ in range(n_resamples)])


def _statistic(
    metric: Callable[..., float],
    facts: Facts,
    arrays: tuple[NDArray[Any], NDArray[Any]],
    options: dict[str, Any],
) -> Callable[[NDArray[np.int64]], float]:
    first, second = arrays
    if facts.rows is not None:
        losses = facts.rows(first, second)
        return lambda drawn: float(losses[drawn].mean())
    return lambda drawn: metric(first[drawn], second[drawn], **options)
