"""A temperature for every row, a power of its entropy, of least negative log-likelihood."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal._types import FitStatus, Labels, Logits, Weights
from shiftcal.numerics.entropy import entropy
from shiftcal.numerics.row_blocks import row_blocks
from shiftcal.numerics.temperature.likelihood import solve_temperature

Array = NDArray[np.float64]

# Below this share of the largest entropy there is, rows count as equally sure.
LEAST_ENTROPY = 1e-6
# Entropies that all lie within one per cent of another say nothing about a power of them.
_LEAST_SPREAD = 0.01
# Powers to begin with, beside none: the likelihood may have more than one valley.
_POWERS = (0.3, -0.3)
# Rows that are enough to tell the valleys apart.
_ENOUGH_ROWS = 4000
# With slopes this small the loss is within 1e-9 or so of the bottom of its valley.
_FLAT = 1e-5


class PowerFit(NamedTuple):
    """``log T = log_scale + power * log h``, and how the fit ended."""

    log_scale: float
    power: float
    status: FitStatus


class _Problem(NamedTuple):
    """Rows, and where between the least (0) and the greatest (1) entropy each of them lies."""

    logits: Logits
    labels: Labels
    shares: Array
    place: Array

    def some(self, every: int) -> _Problem:
        """The same for every such row only."""
        rows = slice(None, None, every)
        shares = self.shares[rows]
        labels, place = self.labels[rows], self.place[rows]
        return _Problem(self.logits[rows], labels, shares / shares.sum(), place)

    def loss(self, ends: Array) -> tuple[float, Array]:
        """Mean NLL and its slopes by log T at the least and at the greatest entropy."""
        beta = np.exp(-(ends[0] * (1 - self.place) + ends[1] * self.place))
        nll, slopes = 0.0, np.zeros(2)
        for rows in row_blocks(*self.logits.shape):
            z = self.logits[rows].astype(np.float64)
            z -= z.max(axis=1, keepdims=True)
            of_label = z[np.arange(len(z)), self.labels[rows]]
            e = np.exp(beta[rows, None] * z)
            total = e.sum(axis=1)
            nll += float(self.shares[rows] @ (np.log(total) - beta[rows] * of_label))
            by_log_t = of_label - np.einsum("ij,ij->i", e, z) / total
            by_log_t *= beta[rows] * self.shares[rows]
            slopes += by_log_t @ (1 - self.place[rows]), by_log_t @ self.place[rows]
        return nll, slopes


def log_relative_entropy(logits: Logits) -> Array:
    """``log h`` of every row: entropy of softmax over its greatest, ``log k``; 1e-6 at least."""
    h = entropy(logits) / np.log(logits.shape[1])
    return np.asarray(np.log(np.clip(h, LEAST_ENTROPY, 1.0)))


def solve_power(
    logits: Logits,
    labels: Labels,
    weights: Weights | None,
    *,
    t_range: tuple[float, float],
) -> PowerFit:
    """The ``T = exp(a) h^b`` of least mean NLL; on these rows T stays in ``t_range``.

    Not convex: the search begins at ``b = 0``, temperature scaling, and at a power of either sign,
    and the best end is taken. Where one temperature has no optimum in the range, or all rows have
    about one entropy, ``b`` is 0.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``.
        weights: ``(n,)`` of any scale, or ``None`` for ones.
        t_range: Smallest and largest temperature allowed.
    """
    if weights is not None:
        kept = weights > 0
        logits, labels, weights = logits[kept], labels[kept], weights[kept]
    plain = solve_temperature(logits, labels, weights, t_range=t_range)
    centre = float(np.log(plain.temperature))
    log_h = log_relative_entropy(logits)
    low, high = float(log_h.min()), float(log_h.max())
    if not plain.status.converged or high - low < _LEAST_SPREAD:
        return PowerFit(centre, 0.0, plain.status)
    shares = np.ones(len(labels)) if weights is None else weights / weights.max()
    problem = _Problem(logits, labels, shares / shares.sum(), (log_h - low) / (high - low))
    middle = float(problem.shares @ log_h)
    starts = [centre + b * (np.array([low, high]) - middle) for b in (0.0, *_POWERS)]
    ends, status = _best(problem, starts, t_range)
    power = float(ends[1] - ends[0]) / (high - low)
    return PowerFit(float(ends[0]) - power * low, power, status)


def _best(
    problem: _Problem, starts: list[Array], t_range: tuple[float, float]
) -> tuple[Array, FitStatus]:
    """The best end of searches on some rows, and of none, followed to its bottom on all."""
    sparse = problem.some(max(1, len(problem.labels) // _ENOUGH_ROWS))
    candidates = [starts[0], *(_search(sparse, start, t_range).x for start in starts)]
    found = _search(problem, min(candidates, key=lambda ends: problem.loss(ends)[0]), t_range)
    return found.x, _status(found.x, found.jac, t_range)


def _search(problem: _Problem, start: Array, t_range: tuple[float, float]) -> Any:
    low, high = np.log(t_range)
    # No test on the loss itself: it stops falling visibly long before the slopes are zero.
    options = {"ftol": 0.0, "gtol": 1e-9, "maxiter": 200}
    return minimize(
        problem.loss,
        np.clip(start, low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high)] * 2,
        options=options,
    )


def _status(ends: Array, slopes: Array, t_range: tuple[float, float]) -> FitStatus:
    low, high = np.log(t_range)
    for end, which in zip(ends, ("least", "greatest"), strict=True):
        why = f"the temperature of the rows of {which} entropy stopped at"
        what = "fit on more rows, or use the temperature map"
        if end <= low:
            text = f"{why} {t_range[0]:g}, the lower end of t_range; {what}."
            return FitStatus("at-lower-bound", text)
        if end >= high:
            text = f"{why} {t_range[1]:g}, the upper end of t_range; {what}."
            return FitStatus("at-upper-bound", text)
    slope = float(np.abs(slopes).max())
    if slope > _FLAT:
        return FitStatus(
            "not-converged",
            f"the fit stopped before it converged (largest slope {slope:.1e}, wanted {_FLAT:.0e}); "
            "use the temperature map on this set.",
        )
    return FitStatus("converged")
