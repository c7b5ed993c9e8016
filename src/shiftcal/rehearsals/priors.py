"""Class priors that a target may have: much as they were, or moved."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels

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
    for rows, concentration in _shares(mixture, n_draws):
        if concentration is None:
            priors[rows] = base
        else:
            many = rows.stop - rows.start
            priors[rows] = rng.dirichlet(concentration * len(base) * base, size=many)
    by_class = np.zeros((n_draws, k))
    by_class[:, known] = priors / counts[known]
    return by_class[:, labels]


def _shares(mixture: Mixture, n_draws: int) -> list[tuple[slice, float | None]]:
    ends = np.rint(np.cumsum([share for share, _ in mixture]) * n_draws).astype(int).tolist()
    starts = [0, *ends[:-1]]
    return [
        (slice(start, end), concentration)
        for start, end, (_, concentration) in zip(starts, ends, mixture, strict=True)
    ]
