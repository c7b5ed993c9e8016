"""Four numbers of a classifier's outputs that tell how hard the data is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats, Logits
from shiftcal.numerics.row_blocks import row_blocks
from shiftcal.numerics.softmax import softmax

STATISTICS = ("confidence", "entropy", "spread", "sharpness")
# A bootstrap needs no more groups; parts of a large target are made of whole ones, which are to be
# small; and there is an end to memory.
_GROUPS, _GROUP_ROWS, _MOST_GROUPS = 256, 100, 8192
_PARTS = 64
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
    moments[:, 0] = p.max(axis=1)
    moments[:, 1] = _entropy(p)
    moments[:, 2 : 2 + k] = p
    np.square(p, out=moments[:, 2 + k :])
    return moments


def output_statistics(means: Floats) -> NDArray[np.float64]:
    """The statistics of a sample, from the means of its :func:`row_moments`.

    With ``m_k = mean p_k`` they are the log-odds of mean p_max, the mean entropy of the rows, the
    entropy of ``m``, both divided by ``log K``, and the sharpness
    ``(1 / K) Σ_k mean(p_k²) / mean(p_k)``. The first two tell how sure the rows are. The third
    falls when the model gives a few classes only, whether it has collapsed onto them or the data
    has no others. The fourth is how sure the model is of a class where it gives it anything,
    averaged over classes with equal weight: it falls with a collapse, and hardly with a change of
    the class prior, since a model that is sure of its classes has ``p_k² = p_k`` in all of them;
    it is a class without any rows that lowers it too.

    Args:
        means: ``(..., 2 + 2 k)``.

    Returns:
        ``(..., 4)``, in the order of :data:`STATISTICS`.
    """
    k = (means.shape[-1] - 2) // 2
    top = np.clip(means[..., 0], EDGE, 1 - EDGE)
    first, second = means[..., 2 : 2 + k], means[..., 2 + k :]
    sharp = np.divide(second, first, out=np.zeros_like(first, dtype=np.float64), where=first > 0)
    return np.stack(
        [
            np.log(top) - np.log1p(-top),
            means[..., 1] / np.log(k),
            _entropy(first) / np.log(k),
            sharp.mean(axis=-1),
        ],
        axis=-1,
    )


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
        """The statistics of ``n_draws`` samples drawn anew, group by group with replacement."""
        g = len(self.counts)
        times = rng.multinomial(g, np.full(g, 1 / g), size=n_draws)
        return output_statistics(times @ self.sums / (times @ self.counts)[:, None])


def grouped_moments(logits: Logits, rng: np.random.Generator) -> Grouped:
    """The moments of all rows, in random groups, in memory that does not grow with the rows."""
    n, k = logits.shape
    g = min(n, max(_GROUPS, min(n // _GROUP_ROWS, _MOST_GROUPS)))
    group = rng.permutation(n) % g
    sums = np.zeros((g, 2 + 2 * k))
    for rows in row_blocks(n, k):
        np.add.at(sums, group[rows], row_moments(logits[rows]))
    return Grouped(sums, np.bincount(group, minlength=g))


def random_parts(groups: int, taken: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Parts of ``taken`` groups each, drawn without replacement: ``(p, groups)``."""
    return np.argsort(rng.random((_PARTS, groups)), axis=1) < taken


def _entropy(p: Floats) -> NDArray[np.float64]:
    logs = np.log(p, out=np.zeros_like(p, dtype=np.float64), where=p > 0)
    return np.asarray(-(p * logs).sum(axis=-1))
