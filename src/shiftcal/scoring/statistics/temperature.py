"""The temperature of least negative log-likelihood, from totals alone or with another look."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shiftcal._types import FitStatus
from shiftcal.numerics.temperature import range_status
from shiftcal.numerics.temperature.ladder import BETAS
from shiftcal.numerics.temperature.likelihood import TemperatureSolution
from shiftcal.numerics.temperature.slope_search import find_zero
from shiftcal.numerics.temperature.softmax_moments import Moments, softmax_moments
from shiftcal.scores import Scores
from shiftcal.scoring.statistics.rows import checked_blocks
from shiftcal.scoring.statistics.totals import Totals

# The temperatures between which the ladder tells the likelihood.
REACH = (1 / float(BETAS[-1]), 1 / float(BETAS[0]))


def from_totals(totals: Totals, t_range: tuple[float, float]) -> TemperatureSolution:
    """The best temperature, or the end of the range that the likelihood points to and why."""
    likelihood = totals.likelihood()
    ends = (1 / t_range[1], 1 / t_range[0])
    beta = likelihood.minimum(ends) if totals.sums["regret"] else None
    if beta is not None:
        return TemperatureSolution(1 / beta, FitStatus("converged"), likelihood.nll(beta))
    if totals.sums["regret"] == 0:
        flat = totals.sums["constant"] == totals.sums["rows"]
        lower, why = not flat, range_status.FLAT if flat else range_status.ERROR_FREE
    elif likelihood.slope(ends[1]) <= 0:
        lower, why = True, range_status.BELOW
    else:
        lower = False
        why = range_status.ABOVE if totals.sums["gain"] > 0 else range_status.CHANCE
    status = (range_status.at_lower_bound if lower else range_status.at_upper_bound)(t_range, why)
    temperature = t_range[0] if lower else t_range[1]
    return TemperatureSolution(temperature, status, likelihood.nll(1 / temperature))


def refined(
    start: TemperatureSolution, parts: Iterable[Scores], t_range: tuple[float, float]
) -> TemperatureSolution:
    """The temperature to the last digits, by looking at all rows again, mostly once.

    Args:
        start: What the totals said; returned if it is an end of the range.
        parts: Labelled scores, gone through once for every look.
        t_range: Smallest and largest temperature allowed.
    """
    if not start.status.converged:
        return start
    ends = (1 / t_range[1], 1 / t_range[0])
    found = find_zero(lambda beta: _look(parts, beta), ends, 1 / start.temperature)
    if not found.converged or found.here is None:
        return start
    here, r = found.here, found.beta / found.here.beta - 1
    nll = here.nll + r * (here.slope + r * (here.curvature / 2 + r * here.third / 6))
    return TemperatureSolution(1 / found.beta, FitStatus("converged"), nll)


def _look(parts: Iterable[Scores], beta: float) -> Moments | None:
    """The moments of all rows, from the sums of every block."""
    sums, rows, at = np.zeros(len(Moments._fields) - 1), 0, beta
    for part in parts:
        for logits, labels in checked_blocks(part):
            assert labels is not None
            block = softmax_moments((logits.astype(np.float64), labels, None), beta)
            assert block is not None
            at = block.beta
            sums += len(logits) * np.array(block[1:])
            rows += len(logits)
    return Moments(at, *(sums / rows).tolist()) if rows else None
