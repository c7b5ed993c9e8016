"""Maximum-likelihood weights of a mixture whose parts are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal._types import Weights

Array = NDArray[np.float64]


class Mixture(NamedTuple):
    """Weights of the parts, and how far their likelihood can be from the best at most.

    Attributes:
        weights: ``(m,)``, not negative, together one.
        gap: Bound on the mean log-likelihood that is missing.
    """

    weights: Array
    gap: float


def solve_mixture(densities: Array, weights: Weights | None) -> Mixture:
    """The point of the simplex of greatest weighted mean of ``log(densities @ point)``.

    The likelihood is concave, so any local optimum is the best one. Its distance from there is
    at most ``max_j mean(f_j / f) - 1``, with ``f_j`` the densities of part j and ``f`` those of
    the mixture, which is the ``gap`` returned.

    Args:
        densities: ``(n, m)``, positive: what each part gives to what was seen.
        weights: ``(n,)``, or ``None`` for ones.
    """
    n, m = densities.shape
    shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()

    def loss(point: Array) -> tuple[float, Array]:
        mixed = np.maximum(densities @ point, np.finfo(np.float64).tiny)
        return -float(shares @ np.log(mixed)), -densities.T @ (shares / mixed)

    found: Any = minimize(
        loss,
        np.full(m, 1.0 / m),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * m,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    point = np.where(found.x < 1e-12, 0.0, found.x)  # what the solver leaves of a zero
    point = point / point.sum()
    return Mixture(point, float((-loss(point)[1]).max() - 1.0))
