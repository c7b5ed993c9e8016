"""Rehearsal: the temperature that targets with outputs like these needed.

Targets are rehearsed by drawing surrogate sets under many class priors; what was right for each
is learnt as a function of the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, check_fraction
from shiftcal.methods.method import FEW_ROWS, Method, Selection, fit_maps, nearest_first
from shiftcal.numerics.blocks import kernels, one_blas_thread, row_blocks, share, thread_count
from shiftcal.numerics.softmax import softmax, sum_of_rows, top_of_rows
from shiftcal.progress import track
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Flag, Floats, Interval, Labels, Logits

# --------------------------------------------------------------------------------------
# Class priors that a target may have: much as they were, or moved.
# --------------------------------------------------------------------------------------

# Share of the rehearsals, and how near their prior is to that of the calibration set: the
# concentration of a Dirichlet distribution around it for each class; None is the same prior.
Mixture: TypeAlias = tuple[tuple[float, float | None], ...]
CALM: Mixture = ((0.85, None), (0.15, 30.0))
MOVED: Mixture = ((0.2, 10.0), (0.4, 1.0), (0.4, 0.3))


def rehearsed_weights(
    labels: Labels, k: int, mixture: Mixture, *, n_draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Weights of the rows for ``n_draws`` class priors, ``(n_draws, n)``, each adding up to 1.

    Priors are drawn from ``Dirichlet(a K π)`` around the prior ``π`` of the labels, with the
    concentrations ``a`` of the mixture. Classes without a row stay without.
    """
    counts = np.bincount(labels, minlength=k)
    known = counts > 0
    base = counts[known] / counts.sum()
    priors = np.empty((n_draws, len(base)))
    ends = np.rint(np.cumsum([share for share, _ in mixture]) * n_draws).astype(int).tolist()
    for start, end, (_, concentration) in zip([0, *ends[:-1]], ends, mixture, strict=True):
        if concentration is None:
            priors[start:end] = base
        else:
            priors[start:end] = rng.dirichlet(concentration * len(base) * base, size=end - start)
    by_class = np.zeros((n_draws, k))
    by_class[:, known] = priors / counts[known]
    return by_class[:, labels]


# --------------------------------------------------------------------------------------
# Four numbers of a classifier's outputs that tell how hard the data is.
# --------------------------------------------------------------------------------------

# A bootstrap needs no more groups; parts of a large target are made of whole ones, which are to be
# small; and there is an end to memory.
_GROUPS, _GROUP_ROWS, _MOST_GROUPS = 256, 100, 8192
_PARTS = 64
# Blocks of rows that threads share at a time.
_TOGETHER = 8
# Means of p_max are kept this far from 0 and 1, whose log-odds are infinite.
EDGE = 1e-6


def row_moments(logits: Logits) -> NDArray[np.float64]:
    """Of every row what the statistics are means of: p_max, entropy, ``p`` and ``p²``.

    Returns:
        ``(n, 2 + 2 k)``.
    """
    p = softmax(logits)
    n, k = p.shape
    moments = np.empty((n, 2 + 2 * k))
    moments[:, 0] = top_of_rows(p)[1]
    moments[:, 1] = _entropy(p)
    moments[:, 2 : 2 + k] = p
    np.square(p, out=moments[:, 2 + k :])
    return moments


def output_statistics(means: Floats) -> NDArray[np.float64]:
    """The statistics of a sample, from the means of its :func:`row_moments`.

    With ``m_k = mean p_k`` they are the log-odds of mean p_max, the mean entropy of the rows, the
    entropy of ``m``, both divided by ``log K``, and the sharpness
    ``(1 / K) Σ_k mean(p_k²) / mean(p_k)``. The first two are about confidence. The third
    falls when the model gives a few classes only, whether it has collapsed onto them or the data
    has no others. The fourth is how confident the model is of a class where it gives it anything,
    averaged over classes with equal weight: it falls with a collapse, and hardly with a change of
    the class prior, since a model that is certain of its classes has ``p_k² = p_k`` in all of them;
    it is a class without any rows that lowers it too.

    Args:
        means: ``(..., 2 + 2 k)``.

    Returns:
        ``(..., 4)``, in this order.
    """
    k = (means.shape[-1] - 2) // 2
    top = np.clip(means[..., 0], EDGE, 1 - EDGE)
    first, second = means[..., 2 : 2 + k], means[..., 2 + k :]
    sharp = np.divide(second, first, out=np.zeros_like(first, dtype=np.float64), where=first > 0)
    log_odds = np.log(top) - np.log1p(-top)
    entropies = means[..., 1] / np.log(k), _entropy(first) / np.log(k)
    return np.stack([log_odds, *entropies, sharp.mean(axis=-1)], axis=-1)


@dataclass(frozen=True)
class Grouped:
    """Sums of the moments over random groups of rows, of which a bootstrap draws.

    Attributes:
        sums: ``(g, 2 + 2 k)``.
        counts: ``(g,)`` rows in each group; or what they weigh, such that all groups together weigh
            as much as the rows of an unweighted sample that is as noisy.
        squares: Sum of p_max² over all rows; ``None`` if it is not known.
    """

    sums: NDArray[np.float64]
    counts: NDArray[np.int64] | NDArray[np.float64]
    squares: float | None = None

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.sums.shape[1] // 2 - 1

    @property
    def n(self) -> int:
        """Rows in all groups."""
        return round(float(self.counts.sum()))

    @property
    def mean_confidence(self) -> float:
        """Mean p_max of all rows."""
        return float(self.sums[:, 0].sum() / self.counts.sum())

    @property
    def sd_confidence(self) -> float:
        """Its standard deviation over rows, if the squares are known."""
        assert self.squares is not None
        variance = self.squares / float(self.counts.sum()) - self.mean_confidence**2
        return math.sqrt(max(variance, 0.0))

    def statistics(self) -> NDArray[np.float64]:
        """The statistics of all rows."""
        return output_statistics(self.sums.sum(axis=0) / self.counts.sum())

    def at_size(self, size: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """The statistics that a part of about ``size`` rows has, of all rows if there are no more.

        The entropy of a mean depends on how many rows it is of. Those of random parts are averaged.
        """
        g = len(self.counts)
        taken = max(1, round(g * size / self.n))
        if taken >= g:
            return self.statistics()
        some = random_parts(g, taken, rng)
        return output_statistics(some @ self.sums / (some @ self.counts)[:, None]).mean(axis=0)

    def redrawn(self, n_draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """The statistics of ``n_draws`` samples drawn again, group by group with replacement."""
        g = len(self.counts)
        drawn = rng.integers(g, size=(n_draws, g))
        times = np.stack([np.bincount(row, minlength=g) for row in drawn])
        return output_statistics(times @ self.sums / (times @ self.counts)[:, None])


def grouped_moments(logits: Logits, rng: np.random.Generator) -> Grouped:
    """The moments of all rows, in random groups, in memory that does not grow with the rows."""
    n, k = logits.shape
    g = min(n, max(_GROUPS, min(n // _GROUP_ROWS, _MOST_GROUPS)))
    if g > _GROUPS:  # a shuffle of so many takes as long as all the rest
        group = rng.integers(g, size=n, dtype=np.int16)
    else:
        group = np.resize(np.arange(g, dtype=np.int16), n)
        rng.shuffle(group)
    sums, counts = np.zeros((g, 2 + 2 * k)), np.zeros(g, np.int64)
    some = list(row_blocks(n, k))
    for i in range(0, len(some), _TOGETHER):
        found = dict.fromkeys(range(i, min(i + _TOGETHER, len(some))), np.empty(0))

        def fill(j: int, found: dict[int, NDArray[np.float64]] = found) -> None:
            found[j] = row_moments(logits[some[j]])

        share(fill, found, threads=thread_count())
        for j, moments in found.items():  # in order, whatever thread was first
            here = group[some[j]].astype(np.int64)
            kernels.add_to_groups(moments, here, sums)
            counts += np.bincount(here, minlength=g)
    return Grouped(sums, counts)


def random_parts(groups: int, taken: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Parts of ``taken`` groups each, drawn without replacement: ``(p, groups)``."""
    return np.argsort(rng.random((_PARTS, groups)), axis=1) < taken


def _entropy(p: Floats) -> NDArray[np.float64]:
    logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    logs *= p
    return -(sum_of_rows(logs) if logs.ndim == 2 else logs.sum(axis=-1))


# --------------------------------------------------------------------------------------
# Rehearsed targets of one surrogate set.
# --------------------------------------------------------------------------------------

# Temperatures at which the likelihood of every row is known: within this factor of the set's own.
_FACTOR = 4.0
_POINTS = 21
# Rows of a set that are drawn from: more cost time and teach little.
_ROWS, _ROWS_PER_CLASS = 5000, 10


@dataclass(frozen=True)
class Draws:
    """Targets rehearsed, and what was right for each.

    Attributes:
        statistics: ``(m, 4)`` of the outputs.
        log_t: ``(m,)`` logarithms of the temperature of least NLL, for the whole set under the
            draw's class prior: that of a few rows is chance for the most part.
        accuracy: ``(m,)`` of the whole set under that prior.
        moved: ``(m,)`` whether the class prior was another than the calibration set's.
    """

    statistics: NDArray[np.float64]
    log_t: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    moved: NDArray[np.bool_]


class Rehearser:
    """A surrogate set, ready to be drawn from under class priors of any kind.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        log_t: Logarithm of the set's own temperature.
        rng: Draws the rows that are used, where there are more than the draws can tell apart.

    Attributes:
        n: Rows used.
    """

    def __init__(
        self, logits: Logits, labels: Labels, log_t: float, rng: np.random.Generator
    ) -> None:
        most = max(_ROWS, _ROWS_PER_CLASS * logits.shape[1])
        if len(logits) > most:
            some = np.sort(rng.choice(len(logits), most, replace=False))
            logits, labels = logits[some], labels[some]
        self._labels = labels
        self._groups = np.unique(labels, return_index=True, return_inverse=True)[1:]
        self.n, self._k = logits.shape
        self._grid = log_t + np.linspace(-1, 1, _POINTS) * np.log(_FACTOR)
        losses = _losses(logits, labels, np.exp(self._grid))
        right = logits.argmax(axis=1) == labels
        self._moments = row_moments(logits)
        self._truth = np.column_stack([losses, right])

    def draw(self, size: int, n_draws: int, rng: np.random.Generator) -> Draws:
        """Targets of about ``size`` rows drawn with replacement, half of them with a moved prior.

        How often a row comes is Poisson, which is the multinomial draw but for the number of rows.
        """
        half = n_draws // 2
        moved = np.arange(n_draws) >= n_draws - half
        calm = rehearsed_weights(self._labels, self._k, CALM, n_draws=n_draws - half, rng=rng)
        other = rehearsed_weights(self._labels, self._k, MOVED, n_draws=half, rng=rng)
        weights = np.concatenate([calm, other])
        total, moments = np.empty((n_draws, 1)), np.empty((n_draws, self._moments.shape[1]))
        for some in row_blocks(n_draws, self.n):  # which stay in the processor's cache
            times = _poisson(size * weights[some], *self._groups, rng)
            total[some] = times.sum(axis=1, keepdims=True)
            moments[some] = times @ self._moments
        kept = total[:, 0] > 0
        truth = (weights @ self._truth)[kept]
        return Draws(
            statistics=output_statistics(moments[kept] / total[kept]),
            log_t=_minimum(self._grid, truth[:, :-1]),
            accuracy=np.clip(truth[:, -1], 0.0, 1.0),
            moved=moved[kept],
        )


def _poisson(
    rates: Floats, first: NDArray[np.intp], group: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.float64]:
    """``rng.poisson(rates)``, bit for bit, faster where all rates are below 10.

    Args:
        rates: ``(d, n)``.
        first: ``(c,)`` a column of every group of columns that have the same rate in every row.
        group: ``(n,)`` the group of every column.
        rng: Left as ``rng.poisson`` leaves it.
    """
    apart = rates[:, first]
    if apart.max() < 10:  # numpy then multiplies uniforms until they are below e^-rate
        limits = np.array([math.exp(-rate) if rate > 0 else 2.0 for rate in apart.flat])
        expected = rates.size + rates.sum()
        counts, used = np.empty(rates.shape), np.empty(1, np.int64)
        source, before = rng.bit_generator, rng.bit_generator.state
        uniforms = rng.random(int(expected + 10 * math.sqrt(expected)))
        kernels.poisson_counts(limits.reshape(apart.shape), group, uniforms, counts, used)
        source.state = before
        if used[0] >= 0:
            source.advance(int(used[0]))  # type: ignore[attr-defined]
            kept = {name: before[name] for name in ("has_uint32", "uinteger")}
            source.state = {**source.state, **kept}  # which advance forgets
            return counts
    return rng.poisson(rates).astype(np.float64)


def _losses(logits: Logits, labels: Labels, temperatures: Floats) -> NDArray[np.float64]:
    """NLL of every row at every temperature, ``(n, t)``."""
    n, k = logits.shape
    losses = np.empty((n, len(temperatures)))
    for rows in row_blocks(n, k):
        z = logits[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        own = z[np.arange(len(z)), labels[rows]]
        for column, temperature in enumerate(temperatures):
            total = np.exp(z / temperature).sum(axis=1)
            losses[rows, column] = np.log(total) - own / temperature
    return losses


def _minimum(grid: Floats, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the losses ``(m, t)`` on an even grid are least, by a parabola through three points."""
    least = np.clip(losses.argmin(axis=1), 1, losses.shape[1] - 2)
    rows = np.arange(len(losses))
    before, at, after = (losses[rows, least + step] for step in (-1, 0, 1))
    bend = before - 2 * at + after
    step = np.divide(before - after, 2 * bend, out=np.zeros_like(at), where=bend > 0)
    return np.asarray(grid[least] + np.clip(step, -1, 1) * (grid[1] - grid[0]))


# --------------------------------------------------------------------------------------
# From the statistics of outputs to temperature and accuracy: two quadratics and a judge.
#
# One quadratic is learnt where the class prior was as in the calibration set, one where it had
# moved, and a logistic regression judges which of the two a target is. A model that has collapsed
# onto a few classes and a target that has a few classes only look alike in one statistic and not in
# all four.
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# What is kept of all rehearsals: one response for each of a few sizes of the target.
# --------------------------------------------------------------------------------------

# Rows drawn for a rehearsed target. The entropy of the mean of n rows is too low by about
# (K - 1) / 2n: what is learnt must come from samples as small as the target.
SIZES = (100, 400, 2000, 10_000)
# Rehearsals of one size, shared among the sets; but no set has fewer or more than these.
_TOTAL, _LEAST, _MOST = 3000, 60, 200
# The clean set has more, since it is to be told from all others.
_CLEAN = 300
# Errors of the answers that are kept, for the intervals.
_ERRORS = 200


@dataclass(frozen=True)
class Errors:
    """Errors of answers, as evenly spaced quantiles.

    Attributes:
        log_t: ``(e,)`` of the logarithm of the temperature.
        accuracy: ``(e,)``.
    """

    log_t: NDArray[np.float64]
    accuracy: NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """Responses for several sizes of the target, and how wrong they are without a corruption.

    Attributes:
        responses: In the order of their sizes.
        errors: What the answers were off where the corruption of a set was left out of what was
            learnt from, with the class prior as it was.
        moved_errors: The same with a moved prior.
        reach: Distance from the rehearsals that 99 in 100 of those left out keep to.
        ladders: Of every set the number of the corruption it was left out with, 0 of the clean one,
            which never was.
        accuracy_errors: ``(j,)`` mean error of the accuracy of every set, left out, with the class
            prior as it was; 0 of the clean one.
    """

    responses: tuple[Response, ...]
    errors: Errors
    moved_errors: Errors
    reach: float
    ladders: tuple[int, ...]
    accuracy_errors: NDArray[np.float64]

    def answer(self, target: Grouped, rng: np.random.Generator) -> Answer:
        """What the target's outputs say.

        Of a target larger than all that was rehearsed, random parts of that size are asked and
        their statistics averaged.
        """
        return self.answers(target.at_size(self.responses[-1].size, rng), target.n)

    def redrawn(self, target: Grouped, n_draws: int, rng: np.random.Generator) -> Answer:
        """What the target's rows say when they are drawn again, around what they say themselves.

        Rows that come twice make the entropy of a mean lower than that of as many other rows, so
        that the statistics drawn are moved to have the mean of those that :meth:`answer` asks.
        """
        drawn = target.redrawn(n_draws, rng)
        asked = target.at_size(self.responses[-1].size, rng)
        return self.answers(drawn - drawn.mean(axis=0) + asked, target.n)

    def answers(self, statistics: NDArray[np.float64], n: int) -> Answer:
        """What statistics ``(..., 4)`` of ``n`` rows say, linear in ``1 / n`` between two sizes."""
        below, above, share = self.between(n)
        fine = above.answer(statistics)
        if below is above:
            return fine
        coarse = below.answer(statistics)
        return Answer(*(share * a + (1 - share) * b for a, b in zip(coarse, fine, strict=True)))

    def between(self, n: int) -> tuple[Response, Response, float]:
        """The two responses for ``n`` rows and the share of the first; one, twice, at the ends."""
        sizes = np.array([response.size for response in self.responses])
        held = float(np.clip(n, sizes[0], sizes[-1]))
        at = int(np.searchsorted(sizes, held))
        if at == 0:
            return self.responses[0], self.responses[0], 0.0
        share = (1 / held - 1 / sizes[at]) / (1 / sizes[at - 1] - 1 / sizes[at])
        return self.responses[at - 1], self.responses[at], float(share)


def remember(bank: SurrogateBank, log_t: Sequence[float], *, seed: int) -> Memory:
    """Rehearse targets of all sizes with every set of a bank, and keep what was learnt.

    The clean set is a step of every ladder: it weighs as many times as there are corruptions.
    A draw of ``m`` rows from ``n`` that are drawn from the world themselves is as noisy as a
    target of ``1 / (1/m + 1/n)`` rows, and is learnt from as such.

    Args:
        bank: Labelled sets.
        log_t: ``(j,)`` logarithms of their temperatures.
        seed: Of the draws.
    """
    rng = np.random.default_rng(seed)
    ladders = ladders_of(bank)
    each = min(max(_TOTAL // len(bank), _LEAST), _MOST)
    by_set, used = [], []
    for j, s in enumerate(track(list(bank), "drawing targets")):  # one at a time: they are large
        one = Rehearser(s.logits, s.labels, log_t[j], rng)
        by_set.append([one.draw(rows, each if j else _CLEAN, rng) for rows in SIZES])
        used.append(one.n)
    rows = float(np.median(used))
    responses, left_out = [], []
    drawn_sets = list(zip(SIZES, zip(*by_set, strict=True), strict=True))
    for drawn_rows, drawn in track(drawn_sets, "learning from them"):
        size = 1 / (1 / drawn_rows + 1 / rows)
        # The clean set is a sample too, and so is the target: what is seen of the one varies by
        # drawing alone, what the other is apart from it by all three.
        calm = drawn[0].statistics[~drawn[0].moved]
        clean = fit_cloud(calm, np.ones(len(calm)), noise=1 + 2 * drawn_rows / rows)
        responses.append(_response(size, drawn, ladders, clean))
        left_out += _left_out(size, drawn, ladders, clean)
    if not left_out:  # the clean set alone
        nothing = Errors(np.zeros(1), np.zeros(1))
        return Memory(tuple(responses), nothing, nothing, float("inf"), (0,), np.zeros(1))
    # Of the largest draws, where nothing but the corruption is to blame.
    largest = left_out[-(len(left_out) // len(SIZES)) :]
    log_t_error, accuracy_error, _, moved, which = (
        np.concatenate(parts) for parts in zip(*largest, strict=True)
    )
    distance = np.concatenate([parts[2] for parts in left_out])
    levels = (np.arange(_ERRORS) + 0.5) / _ERRORS
    calm_errors, moved_errors = (
        Errors(np.quantile(log_t_error[rows], levels), np.quantile(accuracy_error[rows], levels))
        for rows in (moved == 0, moved == 1)
    )
    reach = float(np.quantile(distance, 0.99))
    of_sets = [accuracy_error[(which == j) & (moved == 0)].mean() for j in range(1, len(bank))]
    means = np.array([0.0, *of_sets])
    return Memory(tuple(responses), calm_errors, moved_errors, reach, tuple(ladders), means)


def ladders_of(bank: SurrogateBank) -> list[int]:
    """Of every set the number of its ladder: 0 the clean one, then one for each corruption.

    Where there is one corruption, or their names are not known, each set is a ladder of its own.
    """
    names = [s.corruption for s in bank][1:]
    known = list(dict.fromkeys(names))
    if len(known) < 2 or None in known:
        return list(range(len(names) + 1))
    return [0, *(1 + known.index(name) for name in names)]


def _response(
    size: float, drawn: Sequence[Draws], ladders: Sequence[int], clean: Cloud
) -> Response:
    """Learn from the rehearsals of all these sets together; each set weighs the same."""
    corruptions = len(set(ladders) - {0})
    stepped = len(ladders) > corruptions + 1  # ladders have several steps
    times = [max(corruptions, 1) if own == 0 and stepped else 1 for own in ladders]
    weights = [
        np.full(len(one.log_t), many / len(one.log_t))
        for one, many in zip(drawn, times, strict=True)
    ]
    together = Draws(
        *(
            np.concatenate([getattr(one, name) for one in drawn])
            for name in ("statistics", "log_t", "accuracy", "moved")
        )
    )
    return fit_response(size, together, np.concatenate(weights), clean)


def _left_out(
    size: float, drawn: Sequence[Draws], ladders: Sequence[int], clean: Cloud
) -> list[tuple[NDArray[np.float64], ...]]:
    """Errors, distances, kind and set of each ladder's rehearsals as answered from the others.

    The clean set is never left out: every target has it in the bank.
    """
    found: list[tuple[NDArray[np.float64], ...]] = []
    for ladder in dict.fromkeys(ladders[1:]):
        rest = [j for j, other in enumerate(ladders) if other != ladder]
        response = _response(size, [drawn[j] for j in rest], [ladders[j] for j in rest], clean)
        for j, one in enumerate(drawn):
            if ladders[j] == ladder:
                said = response.answer(one.statistics)
                log_t = np.where(one.moved, said.log_t_moved, said.log_t) - one.log_t
                accuracy = np.where(one.moved, said.accuracy_moved, said.accuracy) - one.accuracy
                kind, which = one.moved.astype(np.float64), np.full(len(log_t), float(j))
                found.append((log_t, accuracy, said.distance, kind, which))
    return found


# --------------------------------------------------------------------------------------
# The method.
# --------------------------------------------------------------------------------------

_DRAWS = 500
# The two answers differ, and it is not clear which holds.
_UNCLEAR, _APART = 0.1, math.log(1.25)


class Decision(NamedTuple):
    """What was decided for a target: the logarithm of a temperature, and which case it was."""

    log_t: float
    outside: bool = False
    clean: bool = False


@final
class Rehearsal(Method):
    """Learns on the bank which temperature goes with which outputs, under many class priors.

    Every surrogate set is resampled many times, with several sizes and class priors, and the best
    temperature of every draw is known. A ridge-regularised quadratic ``log T = q(s)`` predicts it
    from four statistics of the outputs: mean p_max, mean entropy, entropy of the mean output, and
    how certain the model is of each class. There is one for draws with the class prior of the
    calibration set and one for other priors; a logistic regression gives the probability of each
    case, by which the two are averaged. A target as close to the clean set as half of its own
    samples gets the temperature of TS. If the target is farther from all draws than 99 % of the
    draws of a corruption that was left out, the result is halfway to the temperature of the set
    with the nearest mean confidence, and a flag is raised.

    It works with any bank. With several corruptions, its interval is more reliable and, on most
    targets, its error is lower. With a bank of one set it is TS.

    Args:
        level: Intended coverage of the interval of the temperature, over samples of the target and
            over the errors measured by leaving out each corruption of the bank.
        seed: Seed of all draws.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperatures_: Temperature of every set.
        ladder_: Every set in numbers.
        memory_: What was learned from the draws.
        level_: The level it was fitted for.
        seed_: The seed.
    """

    name: ClassVar[str] = "rehearsal"
    uses_target: ClassVar[bool] = True
    uses_bank: ClassVar[bool] = True

    temperatures_: tuple[float, ...]
    ladder_: tuple[SetSummary, ...]
    memory_: Memory
    level_: float
    seed_: int

    def __init__(self, *, level: float = 0.95, seed: int = 0, input: str = "logits") -> None:
        self.level = level
        self.seed = seed
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        self.level_ = check_fraction(self.level, name="level")
        self.seed_ = check_count(self.seed, name="seed", least=0)
        self.ladder_ = bank.summaries()
        self.temperatures_ = tuple(m.temperature_ for m in fit_maps("temperature", bank))
        logs = [math.log(t) for t in self.temperatures_]
        with one_blas_thread():
            self.memory_ = remember(bank, logs, seed=self.seed_)

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        rng = np.random.default_rng(self.seed_)
        return self._select(grouped_moments(logits, rng), rng)

    def needs_rows(self) -> str | None:
        """Sums are all that is needed; those of groups of rows give the interval."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return self._select(target, np.random.default_rng(self.seed_))

    def _select(self, target: Grouped, rng: np.random.Generator) -> Selection:
        confidence = target.mean_confidence
        answer = self.memory_.answer(target, rng)
        decision = self.decide(answer, confidence)
        nearest = self._nearest(confidence)
        accuracy = float(answer.mean_accuracy())
        if decision.outside:
            accuracy = (accuracy + self.ladder_[nearest].accuracy) / 2
        return Selection(
            self.name,
            temperature=math.exp(decision.log_t),
            temperature_interval=self._interval(target, decision, nearest, rng),
            n_target=target.n,
            mean_confidence=confidence,
            n_sets=len(self.ladder_),
            details={
                "estimated_accuracy": accuracy,
                "prior_moved": float(answer.moved),
                "temperature_same_prior": math.exp(float(answer.log_t)),
                "temperature_moved_prior": math.exp(float(answer.log_t_moved)),
                "temperature_nearest": self.temperatures_[nearest],
                "from_clean": float(answer.from_clean),
                "distance": float(answer.distance),
                "reach": self.memory_.reach,
            },
            flags=tuple(self._flags(answer, decision, target.n, nearest)),
        )

    def decide(self, answer: Answer, confidence: float) -> Decision:
        """The temperature for what was answered of a target of this mean raw p_max."""
        if len(self.ladder_) == 1 or float(answer.from_clean) <= 1:
            return Decision(math.log(self.temperatures_[0]), clean=True)
        log_t = float(answer.mean_log_t())
        if float(answer.distance) <= self.memory_.reach:
            return Decision(log_t)
        halfway = (log_t + math.log(self.temperatures_[self._nearest(confidence)])) / 2
        return Decision(halfway, outside=True)

    def _nearest(self, confidence: float) -> int:
        distances = [abs(confidence - s.mean_confidence) for s in self.ladder_]
        return nearest_first(self.ladder_, distances)[0]

    def _interval(
        self, target: Grouped, decision: Decision, nearest: int, rng: np.random.Generator
    ) -> Interval | None:
        """Quantiles over rows drawn again, either class prior, and errors as seen on the bank."""
        if len(self.ladder_) == 1:
            return None
        drawn = self.memory_.redrawn(target, _DRAWS, rng)
        same, moved = (
            said - rng.choice(errors.log_t, size=_DRAWS)
            for said, errors in (
                (drawn.log_t, self.memory_.errors),
                (drawn.log_t_moved, self.memory_.moved_errors),
            )
        )
        logs = np.where(rng.random(_DRAWS) < drawn.moved, moved, same)
        if decision.outside:  # how far to go towards the nearest set is a guess
            there = math.log(self.temperatures_[nearest])
            logs = logs + rng.random(_DRAWS) * (there - np.quantile(logs, 0.5))
        low, high = np.quantile(logs, [(1 - self.level_) / 2, (1 + self.level_) / 2]).tolist()
        low, high = min(low, decision.log_t), max(high, decision.log_t)
        return Interval(math.exp(decision.log_t), math.exp(low), math.exp(high), self.level_)

    def _flags(self, answer: Answer, decision: Decision, n: int, nearest: int) -> Iterator[Flag]:
        if n < FEW_ROWS:
            yield Flag(
                "few-rows",
                f"with {n} target rows the statistics are uncertain, and so is the temperature. "
                f"Use {FEW_ROWS} or more.",
            )
        if len(self.ladder_) == 1:
            yield Flag(
                "one-set",
                "the bank has only the clean set, so its temperature is used. Build a bank with "
                "corruptions.",
            )
            return
        if len({s.corruption for s in self.ladder_[1:]}) == 1:
            yield Flag(
                "one-corruption",
                "the bank has one corruption, so the interval was measured on its severities only; "
                "other kinds of shift can be far outside it. Build a bank of several corruptions.",
            )
        if decision.clean:
            yield Flag(
                "like-clean",
                "the target's outputs look like the clean set's (at "
                f"{float(answer.from_clean):.2g} of the distance that half of its samples stay "
                "within), so it gets the clean set's temperature.",
            )
            return
        same, moved = math.exp(float(answer.log_t)), math.exp(float(answer.log_t_moved))
        probability = float(answer.moved)
        if decision.outside:
            yield Flag(
                "outside-bank",
                f"the target's outputs are {float(answer.distance):.3g} standard deviations from "
                f"those of the bank, and {self.memory_.reach:.3g} are within reach: the shift is "
                "outside what was calibrated, and the confidences are a guess, halfway to the set "
                f"nearest in confidence ({self.ladder_[nearest].name}, "
                f"T = {self.temperatures_[nearest]:.3g}).",
            )
        if probability > 0.5:
            yield Flag(
                "label-shift",
                f"the target seems to have a different class prior (probability {probability:.2f}):"
                f" the temperature learned for that is used, T = {moved:.3g}, not {same:.3g}.",
            )
        unclear = _UNCLEAR < probability < 1 - _UNCLEAR
        if unclear and abs(float(answer.log_t - answer.log_t_moved)) > _APART:
            yield Flag(
                "disagreement",
                f"T is {same:.3g} with the class prior of the calibration set and {moved:.3g} with "
                f"another, which has probability {probability:.2f}: the temperature lies "
                "between. Find out which applies, if you can.",
            )
