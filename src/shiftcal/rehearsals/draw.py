"""Rehearsed targets of one surrogate set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats, Labels, Logits
from shiftcal.numerics.row_blocks import row_blocks
from shiftcal.rehearsals.priors import CALM, MOVED, rehearsed_weights
from shiftcal.rehearsals.statistics import output_statistics, row_moments

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
        parts = ((CALM, n_draws - half), (MOVED, half))
        weights = np.concatenate(
            [
                rehearsed_weights(self._labels, self._k, mixture, n_draws=many, rng=rng)
                for mixture, many in parts
            ]
        )
        moved = np.arange(n_draws) >= n_draws - half
        times = rng.poisson(size * weights).astype(np.float64)
        total = times.sum(axis=1)
        kept = total > 0
        truth = weights[kept] @ self._truth
        return Draws(
            statistics=output_statistics((times @ self._moments)[kept] / total[kept, None]),
            log_t=_minimum(self._grid, truth[:, :-1]),
            accuracy=np.clip(truth[:, -1], 0.0, 1.0),
            moved=moved[kept],
        )


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
