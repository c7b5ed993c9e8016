"""How far the last rows are from the clean set, and the limits that mark a shift."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.monitoring.windows import FEATURES, FLOOR, Plan
from shiftcal.numerics.jit import row_blocks
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Logits

# --------------------------------------------------------------------------------------
# The spans of the past that are compared with the clean set.
# --------------------------------------------------------------------------------------

# A span shorter than the window by less than this factor tells nothing new.
_APART = 1.5


class Scales(NamedTuple):
    """Spans of blocks: the last 1, 2, 4, ... and the window itself.

    Attributes:
        block: Rows of a block.
        weights: ``(s, b)`` what a block counts, by age, the newest first.
        needed: ``(s,)`` blocks that must be there.
    """

    block: int
    weights: NDArray[np.float64]
    needed: NDArray[np.int64]

    @property
    def rows(self) -> NDArray[np.float64]:
        """``(s,)`` rows of unweighted samples that are as noisy."""
        return self.block * self.weights.sum(axis=1) ** 2 / (self.weights**2).sum(axis=1)

    @property
    def totals(self) -> NDArray[np.float64]:
        """``(s,)`` what the rows of a full span weigh."""
        return self.block * self.weights.sum(axis=1)


def scales_of(plan: Plan) -> Scales:
    """The spans of a window."""
    noisy = plan.weights.sum() ** 2 / (plan.weights**2).sum()
    spans: list[int] = []
    while 2 ** len(spans) * _APART < noisy:
        spans.append(2 ** len(spans))
    weights = [(np.arange(plan.blocks) < span).astype(np.float64) for span in spans]
    return Scales(
        plan.block, np.array([*weights, plan.weights]), np.array([*spans, plan.blocks], np.int64)
    )


# --------------------------------------------------------------------------------------
# Limits by simulation: clean streams, redrawn from clean rows, raise so many alarms and no more.
#
# The clean rows stand for the world. In each of many runs the clean set is drawn from them anew,
# with
# the mean and the directions that would be learnt from it, and so is a stream, block by block; what
# differs is then what differs between a clean set of that size and a stream of its kind. The mean
# alone would not do: sets of surer rows than most also vary less, so that they are off and take
# themselves for exact at once. Of every statistic the values that a share ``u`` of the looks exceed
# are known, beyond the largest hundredth by an exponential tail, and the ``u`` is taken at which
# the
# rule with all its hysteresis raises as many alarms as wanted.
# --------------------------------------------------------------------------------------

# From the features of clean rows, (n, f), to directions (f, d).
Directions: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# Alarms to be expected in all runs together, and no more looks than these to see them.
_EVENTS, _LEAST_LOOKS, _MOST_LOOKS = 200, 20_000, 200_000
_RUNS = 200
# Blocks drawn from rows, of which streams are made; and rows drawn for them.
_POOL, _POOL_ROWS, _AT_ONCE = 20_000, 4_000_000, 50_000
# Rows of a redrawn clean set, at the most: of more the directions are known well enough.
_MOST_REDRAWN = 20_000
# Means of blocks of more rows are normal.
_NORMAL_FROM = 2000
# Share of the alarms that the direction of the bank's corruptions may raise; the rest is for all.
_DIRECTED = 0.8
_TAIL = 0.01
# Nine in ten looks at a clean stream keep to the limit of a return.
_CALM, _MOST_CALM = 0.9, 0.9
# Looks that an alarm is due at, at the most, however many are allowed: large blocks have few.
_MOST_SHARE = 0.05
_STEPS = 14
_LEAST = 1e-9


@dataclass(frozen=True)
class Limits:
    """What is compared with what.

    Attributes:
        squares: ``(s, 2)`` for every scale the squares at which the directed and the undirected
            statistic raise an alarm.
        lower: Ratio to those that a stream must keep to, to be called normal again.
        expected: Alarms per 100,000 clean rows that the runs had with these limits.
    """

    squares: NDArray[np.float64]
    lower: float
    expected: float


class _Runs:
    """Simulated looks.

    Args:
        squares: ``(r, t, s, 2)`` of the statistics, looks in order.
        block: Rows of a look.
    """

    def __init__(self, squares: NDArray[np.float64], block: int) -> None:
        self.squares = squares
        self.block = block
        self._sorted = np.sort(squares.reshape(-1, *squares.shape[2:]), axis=0)
        first = int((1 - _TAIL) * len(self._sorted))
        self._tail = self._sorted[first]
        self._beyond = (self._sorted[first:] - self._tail).mean(axis=0)

    def limits(self, share: float) -> NDArray[np.float64]:
        """The squares that this share of looks exceeds, divided among the two statistics."""
        shares = np.array([_DIRECTED, 1 - _DIRECTED]) * share
        last = len(self._sorted) - 1
        at = (last * (1 - np.maximum(shares, _TAIL))).astype(np.intp)
        empirical = np.stack([self._sorted[at[i], :, i] for i in range(2)], axis=-1)
        fitted = self._tail + self._beyond * np.log(_TAIL / np.minimum(shares, _TAIL))
        return np.maximum(np.where(shares < _TAIL, fitted, empirical), _LEAST)

    def rule(self, share: float, patience: int) -> Limits:
        """The limits for a share, and the alarms that they raise."""
        squares = self.limits(share)
        ratios = np.sqrt((self.squares / squares).max(axis=(2, 3)).clip(0.0))
        lower = min(float(np.quantile(ratios, _CALM)), _MOST_CALM)
        alarms = count_alarms(ratios, lower, patience)
        return Limits(squares, lower, 1e5 * alarms / (ratios.size * self.block))


def find_limits(
    clean: NDArray[np.float64],
    scales: Scales,
    *,
    directions: Directions,
    false_alarms: float,
    patience: int,
    rng: np.random.Generator,
) -> Limits:
    """The limits at which clean streams raise ``false_alarms`` per 100,000 rows.

    Args:
        clean: ``(n, f)`` features of the clean rows.
        scales: Of the window.
        directions: How the detector learns its directions from such rows.
        false_alarms: Wanted.
        patience: Looks that a return takes.
        rng: Draws the streams.
    """
    looks = int(np.clip(_EVENTS * 1e5 / (false_alarms * scales.block), _LEAST_LOOKS, _MOST_LOOKS))
    runs = _simulate(clean, scales, directions, looks=looks, rng=rng)
    # Fewer alarms than these are chance; a rarer rule is found on the way there.
    least = max(false_alarms, 30 * 1e5 / (looks * scales.block))
    low, high = math.log(1e-7), math.log(_MOST_SHARE)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if runs.rule(math.exp(middle), patience).expected > least:
            high = middle
        else:
            low = middle
    # Alarms are in proportion to the share, where they are rare.
    share = math.exp(low) * false_alarms / least
    found = runs.rule(share, patience)
    if false_alarms < least:
        return Limits(found.squares, found.lower, false_alarms)
    return found


def statistics(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Signed square along the first direction, squared length along the others: ``(..., 2)``."""
    first = differences[..., 0]
    return np.stack([first * np.abs(first), (differences[..., 1:] ** 2).sum(axis=-1)], axis=-1)


def count_alarms(ratios: NDArray[np.float64], lower: float, patience: int) -> int:
    """How often the rule of :mod:`~shiftcal.monitoring.stream` calls ``shift-began``.

    Args:
        ratios: ``(r, t)``, looks in order.
        lower: Limit of a return.
        patience: Looks in a row that have to keep to it.
    """
    shifted = np.zeros(len(ratios), dtype=bool)
    calm = np.zeros(len(ratios), dtype=np.int64)
    alarms = 0
    for ratio in ratios.T:
        begun = ~shifted & (ratio >= 1)
        calm = np.where(shifted & (ratio <= lower), calm + 1, 0)
        back = calm >= patience
        shifted = (shifted | begun) & ~back
        calm[back] = 0
        alarms += int(begun.sum())
    return alarms


def _simulate(
    clean: NDArray[np.float64],
    scales: Scales,
    directions: Directions,
    *,
    looks: int,
    rng: np.random.Generator,
) -> _Runs:
    n = len(clean)
    centred = clean - clean.mean(axis=0)
    pool = _blocks(centred, scales.block, rng)
    span = scales.weights.shape[1]
    each = -(-looks // _RUNS)
    spread = np.sqrt(1 / scales.rows + 1 / n)
    squares = np.empty((_RUNS, each, len(scales.weights), 2))
    kernels = scales.weights / scales.weights.sum(axis=1, keepdims=True)
    many = min(n, _MOST_REDRAWN)
    for run in range(_RUNS):
        redrawn = centred[rng.integers(0, n, many)]
        off = redrawn.mean(axis=0) * math.sqrt(many / n)
        stream = (pool[rng.integers(0, len(pool), each + span - 1)] - off) @ directions(redrawn)
        past = np.lib.stride_tricks.sliding_window_view(stream, span, axis=0)[..., ::-1]
        squares[run] = statistics(np.einsum("tdb,sb->tsd", past, kernels) / spread[:, None])
    return _Runs(squares, scales.block)


def _blocks(
    centred: NDArray[np.float64], block: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Means of blocks of rows drawn with replacement, ``(m, f)``."""
    n, f = centred.shape
    if block > _NORMAL_FROM:
        values, vectors = np.linalg.eigh(centred.T @ centred / n)
        root = vectors * np.sqrt(values.clip(0.0) / block)
        return rng.standard_normal((_POOL, f)) @ root.T
    many = min(_POOL, _POOL_ROWS // block)
    means = np.empty((many, f))
    each = max(1, _AT_ONCE // block)
    for start in range(0, many, each):
        part = means[start : start + each]
        part[:] = centred[rng.integers(0, n, (len(part), block))].mean(axis=1)
    return means


# --------------------------------------------------------------------------------------
# How far the last rows are from the clean set, at several scales, over what chance explains.
# --------------------------------------------------------------------------------------

# Features that a shift of any direction is looked for in; more find less, each.
_ANY = [FEATURES.index(name) for name in ("confidence", "entropy", "log-remainder")]
# Of each variance, added to it, so that features that vary together do not make all far.
_RIDGE = 1e-3
# Features that vary less do not vary.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Detector:
    """What a shift is seen by.

    Attributes:
        reference: ``(5,)`` mean features of the clean rows.
        directions: ``(5, 4)`` the direction in which corruptions of the bank move them, then
            three uncorrelated ones, all with variance 1 over clean rows.
        n_clean: Clean rows.
        limits: What the statistics are compared with.
    """

    reference: NDArray[np.float64]
    directions: NDArray[np.float64]
    n_clean: int
    limits: Limits


def learn(
    bank: SurrogateBank, scales: Scales, *, false_alarms: float, patience: int, seed: int
) -> Detector:
    """The detector of a bank.

    Args:
        bank: Its first set is the clean one; the others tell where shifts lead.
        scales: Of the window.
        false_alarms: ``shift-began`` wanted per 100,000 clean rows.
        patience: Looks that a return takes.
        seed: Of the streams that are redrawn.
    """
    clean = row_features(bank.clean.logits)
    reference = clean.mean(axis=0)
    moved = np.array([row_features(s.logits).mean(axis=0) - reference for s in bank][1:])
    moves = moved.reshape(-1, len(FEATURES))
    limits = find_limits(
        clean,
        scales,
        directions=lambda rows: _directions(rows, moves),
        false_alarms=false_alarms,
        patience=patience,
        rng=np.random.default_rng(seed),
    )
    return Detector(reference, _directions(clean, moves), len(clean), limits)


def row_features(logits: Logits) -> NDArray[np.float64]:
    """The features of every row, ``(n, 5)``."""
    n, k = logits.shape
    found = np.empty((n, len(FEATURES)))
    for rows in row_blocks(n, k):
        z = logits[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z)
        total = p.sum(axis=1)
        entropy = np.log(total) - (p * z).sum(axis=1) / total
        rest = np.maximum((total - 1) / total, FLOOR)
        concentration = (p**2).sum(axis=1) / total**2
        columns = (1 / total, 1 / total**2, entropy, concentration, -np.log(rest))
        found[rows] = np.column_stack(columns)
    return found


def _directions(clean: NDArray[np.float64], moves: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = clean.std(axis=0)
    scale = np.where(spread > _ROUNDING, spread, 1.0)
    standard = (clean - clean.mean(axis=0)) / scale
    covariance = standard.T @ standard / len(clean) + _RIDGE * np.eye(len(scale))
    whiten = np.linalg.cholesky(np.linalg.inv(covariance[np.ix_(_ANY, _ANY)]))
    found = np.zeros((len(scale), 1 + len(_ANY)))
    found[_ANY, 1:] = whiten
    found[:, 0] = _towards(covariance, moves / scale, len(clean))
    return found / scale[:, None]


def _towards(
    covariance: NDArray[np.float64], moves: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """The mean of the directions, of length 1 each, that best tell a set from the clean one.

    A set that has hardly moved, by chance perhaps, counts less.
    """
    if not len(moves):
        return np.zeros(len(covariance))
    best = np.linalg.solve(covariance, moves.T).T
    lengths = np.sqrt((best * moves).sum(axis=1) + 2 * len(covariance) / n)
    mean = (best / lengths[:, None]).mean(axis=0)
    length = np.sqrt(mean @ covariance @ mean)
    return mean / length if length > _ROUNDING else np.zeros(len(covariance))
