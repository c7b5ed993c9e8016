"""How far the last rows are from the clean set, and the limits that mark a shift."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.numerics.blocks import row_blocks
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Logits

if TYPE_CHECKING:
    from shiftcal.monitoring.monitor import WindowPlan

Array: TypeAlias = NDArray[np.float64]

# Five features of a row: p_max, p_max², entropy, Σ p² and -log(1 - p_max), of the raw softmax.
N_FEATURES = 5
# Those in which a shift of any direction is looked for; more features would each find less.
_ANY = [0, 2, 4]
# 1 - p_max is taken for no less: its logarithm would be infinite.
FLOOR = 1e-6
# A span shorter than the window by less than this factor adds nothing.
_APART = 1.5
# Expected alarms in all simulated runs together, and the looks to see them.
_EVENTS, _LEAST_LOOKS, _MOST_LOOKS = 200, 20_000, 200_000
_RUNS = 200
# Blocks of which streams are made, rows drawn for them, and rows drawn at once.
_POOL, _POOL_ROWS, _AT_ONCE = 20_000, 4_000_000, 50_000
# Most rows of a redrawn clean set; with more the directions are known well enough.
_MOST_REDRAWN = 20_000
# Means of blocks with more rows are normal.
_NORMAL_FROM = 2000
# Shares of the alarms for the direction of the bank's corruptions and for all others.
_SHARES = np.array([0.8, 1 - 0.8])
_TAIL = 0.01
# Nine in ten looks at a clean stream are below the limit of a return.
_CALM, _MOST_CALM = 0.9, 0.9
# Most alarms per look, however many false alarms are allowed: large blocks have few looks.
_MOST_SHARE = 0.05
_STEPS = 14
_LEAST = 1e-9
# Added to each variance, as a share of it, against features that vary together.
_RIDGE = 1e-3
# Features that vary less do not vary.
_ROUNDING = 1e-9


class Scales(NamedTuple):
    """Spans of blocks: the last 1, 2, 4, ... and the window itself.

    Attributes:
        block: Rows of a block.
        weights: ``(s, b)`` weights of the blocks by age, the newest first.
        needed: ``(s,)`` blocks that a span needs.
    """

    block: int
    weights: Array
    needed: NDArray[np.int64]

    @property
    def rows(self) -> Array:
        """``(s,)`` rows of unweighted samples that are as noisy."""
        return self.block * self.weights.sum(axis=1) ** 2 / (self.weights**2).sum(axis=1)

    @property
    def totals(self) -> Array:
        """``(s,)`` total weight of the rows of a full span."""
        return self.block * self.weights.sum(axis=1)


def scales_of(plan: WindowPlan) -> Scales:
    """The spans of a window."""
    noisy = plan.weights.sum() ** 2 / (plan.weights**2).sum()
    spans: list[int] = []
    while 2 ** len(spans) * _APART < noisy:
        spans.append(2 ** len(spans))
    weights = [(np.arange(plan.blocks) < span).astype(np.float64) for span in spans]
    return Scales(
        plan.block, np.array([*weights, plan.weights]), np.array([*spans, plan.blocks], np.int64)
    )


@dataclass(frozen=True)
class Limits:
    """Limits of the statistics.

    Attributes:
        squares: ``(s, 2)`` for every scale the squares at which the directed and the undirected
            statistic raise an alarm.
        lower: Ratio to those that a stream must keep to before it is normal again.
        expected: Alarms per 100,000 clean rows in the simulated runs.
    """

    squares: Array
    lower: float
    expected: float


@dataclass(frozen=True)
class Detector:
    """The reference, directions and limits that a shift is detected with.

    Attributes:
        reference: ``(5,)`` mean features of the clean rows.
        directions: ``(5, 4)`` the direction in which corruptions of the bank move them, then
            three uncorrelated ones, all with variance 1 over clean rows.
        n_clean: Clean rows.
        limits: Limits of the statistics.
    """

    reference: Array
    directions: Array
    n_clean: int
    limits: Limits


def learn(
    bank: SurrogateBank, scales: Scales, *, false_alarms: float, patience: int, seed: int
) -> Detector:
    """The detector of a bank.

    Args:
        bank: Its first set is the clean one; the others show where shifts lead.
        scales: Of the window.
        false_alarms: ``shift-began`` wanted per 100,000 clean rows.
        patience: Looks that a return takes.
        seed: Of the simulated streams.
    """
    clean = row_features(bank.clean.logits)
    reference = clean.mean(axis=0)
    moved = np.array([row_features(s.logits).mean(axis=0) - reference for s in bank][1:])
    moves = moved.reshape(-1, N_FEATURES)
    limits = find_limits(
        clean,
        scales,
        directions=lambda rows: _directions(rows, moves),
        false_alarms=false_alarms,
        patience=patience,
        rng=np.random.default_rng(seed),
    )
    return Detector(reference, _directions(clean, moves), len(clean), limits)


def row_features(logits: Logits) -> Array:
    """The features of every row, ``(n, 5)``."""
    n, k = logits.shape
    features = np.empty((n, N_FEATURES))
    for rows in row_blocks(n, k):
        z = logits[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        p = np.exp(z)
        total = p.sum(axis=1)
        entropy = np.log(total) - (p * z).sum(axis=1) / total
        rest = np.maximum((total - 1) / total, FLOOR)
        concentration = (p**2).sum(axis=1) / total**2
        columns = (1 / total, 1 / total**2, entropy, concentration, -np.log(rest))
        features[rows] = np.column_stack(columns)
    return features


def _directions(clean: Array, moves: Array) -> Array:
    spread = clean.std(axis=0)
    scale = np.where(spread > _ROUNDING, spread, 1.0)
    standard = (clean - clean.mean(axis=0)) / scale
    covariance = standard.T @ standard / len(clean) + _RIDGE * np.eye(len(scale))
    directions = np.zeros((len(scale), 1 + len(_ANY)))
    directions[_ANY, 1:] = np.linalg.cholesky(np.linalg.inv(covariance[np.ix_(_ANY, _ANY)]))
    directions[:, 0] = _towards(covariance, moves / scale, len(clean))
    return directions / scale[:, None]


def _towards(covariance: Array, moves: Array, n: int) -> Array:
    """The mean of the directions, of length 1 each, that best separate a set from the clean one.

    A set that has hardly moved, perhaps by chance, counts less.
    """
    if not len(moves):
        return np.zeros(len(covariance))
    best = np.linalg.solve(covariance, moves.T).T
    lengths = np.sqrt((best * moves).sum(axis=1) + 2 * len(covariance) / n)
    mean = (best / lengths[:, None]).mean(axis=0)
    length = np.sqrt(mean @ covariance @ mean)
    return mean / length if length > _ROUNDING else np.zeros(len(covariance))


def statistics(differences: Array) -> Array:
    """Signed square along the first direction, squared length along the others: ``(..., 2)``."""
    first = differences[..., 0]
    return np.stack([first * np.abs(first), (differences[..., 1:] ** 2).sum(axis=-1)], axis=-1)


# Limits by simulation. The clean rows stand for the world. In each run the clean set is drawn from
# them again, with the mean and the directions that would be learnt from it, and so is a stream,
# block by block. Redrawing the mean alone is not enough: a set of more confident rows also varies
# less, so its errors would be taken for exact. Quantiles of every statistic are known up to the
# largest hundredth and follow an exponential tail from there; the share of looks above the limits
# is chosen such that the rule, hysteresis included, raises the wanted number of alarms.


class _Runs:
    """Simulated looks.

    Args:
        squares: ``(r, t, s, 2)`` of the statistics, looks in order.
        block: Rows of a look.
    """

    def __init__(self, squares: Array, block: int) -> None:
        self.squares, self.block = squares, block
        self._sorted = np.sort(squares.reshape(-1, *squares.shape[2:]), axis=0)
        first = int((1 - _TAIL) * len(self._sorted))
        self._tail = self._sorted[first]
        self._beyond = (self._sorted[first:] - self._tail).mean(axis=0)

    def rule(self, share: float, patience: int) -> Limits:
        """The limits that this share of looks exceeds, and the alarms that they raise."""
        shares = _SHARES * share
        at = ((len(self._sorted) - 1) * (1 - np.maximum(shares, _TAIL))).astype(np.intp)
        empirical = np.stack([self._sorted[at[i], :, i] for i in range(2)], axis=-1)
        fitted = self._tail + self._beyond * np.log(_TAIL / np.minimum(shares, _TAIL))
        squares = np.maximum(np.where(shares < _TAIL, fitted, empirical), _LEAST)
        ratios = np.sqrt((self.squares / squares).max(axis=(2, 3)).clip(0.0))
        lower = min(float(np.quantile(ratios, _CALM)), _MOST_CALM)
        alarms = count_alarms(ratios, lower, patience)
        return Limits(squares, lower, 1e5 * alarms / (ratios.size * self.block))


def find_limits(
    clean: Array,
    scales: Scales,
    *,
    directions: Callable[[Array], Array],
    false_alarms: float,
    patience: int,
    rng: np.random.Generator,
) -> Limits:
    """The limits at which clean streams raise ``false_alarms`` per 100,000 rows.

    Args:
        clean: ``(n, f)`` features of the clean rows.
        scales: Of the window.
        directions: Gives the directions ``(f, d)`` learnt from such rows.
        false_alarms: Wanted alarms.
        patience: Looks that a return takes.
        rng: Draws the streams.
    """
    looks = int(np.clip(_EVENTS * 1e5 / (false_alarms * scales.block), _LEAST_LOOKS, _MOST_LOOKS))
    runs = _simulate(clean, scales, directions, looks=looks, rng=rng)
    # Fewer alarms than these are chance; a rarer rule is extrapolated from them.
    least = max(false_alarms, 30 * 1e5 / (looks * scales.block))
    low, high = math.log(1e-7), math.log(_MOST_SHARE)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if runs.rule(math.exp(middle), patience).expected > least:
            high = middle
        else:
            low = middle
    # Alarms are in proportion to the share where they are rare.
    limits = runs.rule(math.exp(low) * false_alarms / least, patience)
    if false_alarms < least:
        return Limits(limits.squares, limits.lower, false_alarms)
    return limits


def count_alarms(ratios: Array, lower: float, patience: int) -> int:
    """How often the rule of ``Running.move_on`` says ``shift-began``.

    Args:
        ratios: ``(r, t)``, looks in order.
        lower: Limit of a return.
        patience: Looks in a row below it that a return takes.
    """
    shifted = np.zeros(len(ratios), dtype=bool)
    calm = np.zeros(len(ratios), dtype=np.int64)
    alarms = 0
    for ratio in ratios.T:
        began = ~shifted & (ratio >= 1)
        calm = np.where(shifted & (ratio <= lower), calm + 1, 0)
        back = calm >= patience
        shifted = (shifted | began) & ~back
        calm[back] = 0
        alarms += int(began.sum())
    return alarms


def _simulate(
    clean: Array,
    scales: Scales,
    directions: Callable[[Array], Array],
    *,
    looks: int,
    rng: np.random.Generator,
) -> _Runs:
    n = len(clean)
    centred = clean - clean.mean(axis=0)
    pool = _block_means(centred, scales.block, rng)
    span = scales.weights.shape[1]
    per_run = -(-looks // _RUNS)
    spread = np.sqrt(1 / scales.rows + 1 / n)
    squares = np.empty((_RUNS, per_run, len(scales.weights), 2))
    kernels = scales.weights / scales.weights.sum(axis=1, keepdims=True)
    size = min(n, _MOST_REDRAWN)
    for run in range(_RUNS):
        redrawn = centred[rng.integers(0, n, size)]
        off = redrawn.mean(axis=0) * math.sqrt(size / n)
        stream = (pool[rng.integers(0, len(pool), per_run + span - 1)] - off) @ directions(redrawn)
        past = np.lib.stride_tricks.sliding_window_view(stream, span, axis=0)[..., ::-1]
        squares[run] = statistics(np.einsum("tdb,sb->tsd", past, kernels) / spread[:, None])
    return _Runs(squares, scales.block)


def _block_means(centred: Array, block: int, rng: np.random.Generator) -> Array:
    """Means of blocks of rows drawn with replacement, ``(m, f)``."""
    n, f = centred.shape
    if block > _NORMAL_FROM:
        values, vectors = np.linalg.eigh(centred.T @ centred / n)
        root = vectors * np.sqrt(values.clip(0.0) / block)
        return rng.standard_normal((_POOL, f)) @ root.T
    means = np.empty((min(_POOL, _POOL_ROWS // block), f))
    at_once = max(1, _AT_ONCE // block)
    for start in range(0, len(means), at_once):
        part = means[start : start + at_once]
        part[:] = centred[rng.integers(0, n, (len(part), block))].mean(axis=1)
    return means
