"""Limits by simulation: clean streams, redrawn from clean rows, raise so many alarms and no more.

The clean rows stand for the world. In each of many runs the clean set is drawn from them anew, with
the mean and the directions that would be learnt from it, and so is a stream, block by block; what
differs is then what differs between a clean set of that size and a stream of its kind. The mean
alone would not do: sets of surer rows than most also vary less, so that they are off and take
themselves for exact at once. Of every statistic the values that a share ``u`` of the looks exceed
are known, beyond the largest hundredth by an exponential tail, and the ``u`` is taken at which the
rule with all its hysteresis raises as many alarms as wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal.monitoring._scales import Scales

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
    """How often the rule of :mod:`~shiftcal.monitoring._phases` calls ``shift-began``.

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
