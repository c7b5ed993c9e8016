"""From the statistics of outputs to temperature and accuracy: two quadratics and a judge.

One quadratic is learnt where the class prior was as in the calibration set, one where it had
moved, and a logistic regression judges which of the two a target is. A model that has collapsed
onto a few classes and a target that has a few classes only look alike in one statistic and not in
all four.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats
from shiftcal.rehearsals.draw import Draws

# Ridges in variances of the statistics: where nothing but the corruption differs, a stiff answer
# carries farthest beyond the corruptions that were rehearsed.
_SAME_RIDGE, _MOVED_RIDGE, _JUDGE_RIDGE = 0.1, 0.01, 0.001
# The noise of few rows is a ridge itself: with so many the same answer needs half of its own.
_NOISE_ROWS = 100.0
# How often a target's classes are mixed quite otherwise, before its outputs are seen; half as often
# with 400 rows, and so on down, since a chance mixture of few is mistaken for a moved prior easily.
_MOVED_PRIOR, _HALVED_AT = 0.05, 400.0
# How far beyond the rehearsed temperatures an answer may go, as logarithms: a target that is
# harder than all surrogate sets is more often met than one that is easier.
_BELOW, _ABOVE = 0.1, 0.3
ODDS = 6.0
# Statistics that differ by less do not differ.
_ROUNDING = 1e-9
_STEPS = 25
# Median of the chi distribution with four degrees of freedom.
NEAR = 1.8321


class Answer(NamedTuple):
    """What the statistics of one or more samples say.

    Attributes:
        log_t: Logarithm of the temperature, if the class prior is as it was.
        log_t_moved: The same if it has moved.
        accuracy: Share of rows that are right, if the class prior is as it was.
        accuracy_moved: The same if it has moved.
        moved: Probability that it has.
        distance: How far the statistics are from those rehearsed, in their standard deviations.
        from_clean: How far they are from those of the clean set, in distances that half of the
            samples of its kind and of this size keep to.
    """

    log_t: NDArray[np.float64]
    log_t_moved: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    accuracy_moved: NDArray[np.float64]
    moved: NDArray[np.float64]
    distance: NDArray[np.float64]
    from_clean: NDArray[np.float64]

    def mean_log_t(self) -> NDArray[np.float64]:
        """The logarithm of the temperature, over both possibilities."""
        return (1 - self.moved) * self.log_t + self.moved * self.log_t_moved

    def mean_accuracy(self) -> NDArray[np.float64]:
        """The accuracy, over both possibilities."""
        return (1 - self.moved) * self.accuracy + self.moved * self.accuracy_moved


@dataclass(frozen=True)
class Quadratic:
    """Quadratics of standardised statistics.

    Attributes:
        centre: ``(4,)`` mean of the statistics.
        scale: ``(4,)`` their standard deviations.
        coefficients: ``(15, m)`` of the terms, for each of ``m`` answers.
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    coefficients: NDArray[np.float64]

    def __call__(self, statistics: Floats) -> NDArray[np.float64]:
        """The answers ``(m, ...)`` for statistics ``(..., 4)``."""
        terms = quadratic((statistics - self.centre) / self.scale)
        return np.moveaxis(terms @ self.coefficients, -1, 0)


@dataclass(frozen=True)
class Cloud:
    """Where statistics lie: a mean and a covariance.

    Attributes:
        centre: ``(4,)``.
        whiten: ``(4, 4)`` takes differences from it to uncorrelated ones of variance 1.
    """

    centre: NDArray[np.float64]
    whiten: NDArray[np.float64]

    def distance(self, statistics: Floats) -> NDArray[np.float64]:
        """Mahalanobis distance of statistics ``(..., 4)``."""
        return np.asarray(np.linalg.norm((statistics - self.centre) @ self.whiten, axis=-1))


@dataclass(frozen=True)
class Response:
    """What was learnt, for targets of about one size.

    Attributes:
        size: Rows of a target that is as noisy as those rehearsed.
        same: Logarithm of the temperature and log-odds of the accuracy, with the class prior of
            the calibration set.
        moved: The same with another prior.
        judge: Log-odds that the prior has moved.
        everywhere: Where the statistics of all rehearsals lie.
        clean: Where those of the clean set lie.
        low: Least logarithm of a temperature that is answered.
        high: Largest.
    """

    size: float
    same: Quadratic
    moved: Quadratic
    judge: Quadratic
    everywhere: Cloud
    clean: Cloud
    low: float
    high: float

    def answer(self, statistics: Floats) -> Answer:
        """Temperature and accuracy for statistics ``(..., 4)``."""
        log_t, odds = self.same(statistics)
        log_t_moved, odds_moved = self.moved(statistics)
        (judged,) = self.judge(statistics)
        return Answer(
            log_t=np.clip(log_t, self.low, self.high),
            log_t_moved=np.clip(log_t_moved, self.low, self.high),
            accuracy=_share(np.clip(odds, -ODDS, ODDS)),
            accuracy_moved=_share(np.clip(odds_moved, -ODDS, ODDS)),
            moved=_share(np.clip(judged, -50.0, 50.0)),
            distance=self.everywhere.distance(statistics),
            from_clean=self.clean.distance(statistics) / NEAR,
        )


def fit_response(size: float, seen: Draws, weights: Floats, clean: Cloud) -> Response:
    """Least weighted squares with a ridge on all but the constant, for each half by itself.

    Args:
        size: Rows of a target that is as noisy.
        seen: The rehearsed targets, some of either half.
        weights: ``(m,)``, positive.
        clean: Where the statistics of the clean set lie.
    """
    w = weights / weights.sum()
    x, moved = seen.statistics, seen.moved
    least = float(_share(np.array(-ODDS)))
    share = np.clip(seen.accuracy, least, 1 - least)
    wanted = np.column_stack([seen.log_t, np.log(share / (1 - share))])
    # Draws of a class or two that are always right want a temperature of nothing.
    low, high = np.quantile(seen.log_t, [0.01, 0.99])
    prior = _MOVED_PRIOR * size / (size + _HALVED_AT)
    return Response(
        size=size,
        same=_least_squares(
            x[~moved], wanted[~moved], w[~moved], _SAME_RIDGE / (1 + _NOISE_ROWS / size)
        ),
        moved=_least_squares(x[moved], wanted[moved], w[moved], _MOVED_RIDGE),
        judge=_judge(x, moved, w, prior),
        everywhere=fit_cloud(x, w, noise=1.0),
        clean=clean,
        low=float(low) - _BELOW,
        high=float(high) + _ABOVE,
    )


def fit_cloud(x: NDArray[np.float64], w: NDArray[np.float64], *, noise: float) -> Cloud:
    """Mean and covariance of statistics ``(m, 4)``, the covariance multiplied by ``noise``.

    A hundredth of each variance is added to it, so that statistics that hardly vary, or only
    together, do not make everything far.
    """
    centre, scale = _standard(x, w)
    standard = (x - centre) / scale
    covariance = (standard * (w / w.sum())[:, None]).T @ standard + 0.01 * np.eye(x.shape[1])
    whiten = np.linalg.cholesky(np.linalg.inv(covariance)) / scale[:, None] / np.sqrt(noise)
    return Cloud(centre, whiten)


def quadratic(x: Floats) -> NDArray[np.float64]:
    """1, the statistics, and their products in pairs: ``(..., 15)`` for four of them."""
    d = x.shape[-1]
    pairs = [x[..., i] * x[..., j] for i in range(d) for j in range(i, d)]
    return np.stack([np.ones(x.shape[:-1]), *np.moveaxis(x, -1, 0), *pairs], axis=-1)


def _standard(
    x: NDArray[np.float64], w: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    centre = w @ x / w.sum()
    spread = np.sqrt(w @ (x - centre) ** 2 / w.sum())
    return centre, np.where(spread > _ROUNDING, spread, 1.0)


def _least_squares(
    x: NDArray[np.float64], wanted: NDArray[np.float64], w: NDArray[np.float64], ridge: float
) -> Quadratic:
    centre, scale = _standard(x, w)
    terms = quadratic((x - centre) / scale)
    weighed = terms * (w / w.sum())[:, None]
    found = np.linalg.solve(terms.T @ weighed + _penalty(terms, ridge), weighed.T @ wanted)
    return Quadratic(centre, scale, found)


def _judge(
    x: NDArray[np.float64], moved: NDArray[np.bool_], w: NDArray[np.float64], prior: float
) -> Quadratic:
    """Logistic regression by Newton's method, with ``prior`` as the share of moved."""
    centre, scale = _standard(x, w)
    terms = quadratic((x - centre) / scale)
    share = np.where(moved, prior / w[moved].sum(), (1 - prior) / w[~moved].sum()) * w
    penalty = _penalty(terms, _JUDGE_RIDGE)
    found = np.zeros(terms.shape[1])
    found[0] = np.log(prior / (1 - prior))

    def loss(at: NDArray[np.float64]) -> float:
        odds = terms @ at
        return float(share @ (np.logaddexp(0.0, odds) - moved * odds) + at @ penalty @ at / 2)

    for _ in range(_STEPS):
        p = _share(np.clip(terms @ found, -30.0, 30.0))
        slope = terms.T @ (share * (moved - p)) - penalty @ found
        bend = terms.T @ (terms * (share * p * (1 - p))[:, None]) + penalty
        bend[0, 0] += 1e-12
        step = np.linalg.solve(bend, slope)
        now = loss(found)
        while loss(found + step) > now and np.abs(step).max() >= 1e-8:
            step /= 2  # a whole step where the slope is flat goes too far, and never comes back
        found += step
        if np.abs(step).max() < 1e-8:
            break
    return Quadratic(centre, scale, found[:, None])


def _penalty(terms: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    penalty = ridge * np.eye(terms.shape[1])
    penalty[0, 0] = 0.0
    return penalty


def _share(odds: Floats) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-odds)))
