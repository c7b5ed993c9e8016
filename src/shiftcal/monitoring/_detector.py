"""How far the last rows are from the clean set, at several scales, over what chance explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits
from shiftcal.monitoring._columns import FEATURES, FLOOR
from shiftcal.monitoring._scales import Scales
from shiftcal.monitoring._thresholds import Limits, find_limits
from shiftcal.numerics.row_blocks import row_blocks
from shiftcal.surrogates import SurrogateBank

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
