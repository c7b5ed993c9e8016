"""TransCal's one equation in two unknowns, and the search that solves it (Wang et al., 2020).

A temperature T and an exponent λ of the importance weights are sought such that the mean
confidence of the target at T equals the target accuracy that the weighted source predicts.
"""

from __future__ import annotations

import functools
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal._types import Correct, Logits
from shiftcal.numerics.softmax import p_max

# The published search begins here. The equation has a curve of solutions, so this choice is
# part of the method: another start gives another temperature.
START = (2.0, 0.5)
# A spread smaller than this share of the values themselves is rounding, not variance.
_ROUNDING = 1e-12


class TransCalSolution(NamedTuple):
    """Where the search ended.

    Attributes:
        temperature: T.
        exponent: λ; one if the bias term is off.
        accuracy: Estimated target accuracy at λ. Not clipped, so it can leave [0, 1].
        confidence: Mean p_max of the target at T.
        converged: Whether the search says that it converged.
        message: The search's own words.
    """

    temperature: float
    exponent: float
    accuracy: float
    confidence: float
    converged: bool
    message: str

    @property
    def gap(self) -> float:
        """The objective reached, ``|confidence − accuracy|``."""
        return abs(self.confidence - self.accuracy)


def estimated_accuracy(
    log_weights: NDArray[np.float64],
    wrong: Correct,
    exponent: float,
    *,
    source_confidence: float,
    variance: bool = True,
) -> float:
    """Accuracy of the target, from the errors of weighted source samples.

    With ``ŵ = w^λ``, errors ``e`` and ``a = ŵ e`` the estimate is ``1 − mean(a)``. The variance
    term adds two control variates in turn, ``ŵ`` (of mean one if the weights were exact) and
    ``1 − e`` (of mean ``source_confidence`` if the source were calibrated), each times the factor
    ``−Cov/Var`` that lowers the variance most. A control variate that does not vary is left out.

    Args:
        log_weights: ``(n,)`` logarithms of the importance weights ``w``.
        wrong: ``(n,)`` whether the model errs on the sample.
        exponent: ``λ``.
        source_confidence: Mean confidence of the same samples after temperature scaling.
        variance: Whether to use the control variates.
    """
    error = wrong.astype(np.float64)
    weighted = np.exp(exponent * log_weights) * error
    if not variance:
        return 1.0 - float(weighted.mean())
    # (ŵ − 1)/λ instead of ŵ − 1: a control variate may have any scale, and this one has a limit
    # at λ = 0, a corner of the search, where the published quotient is 0/0.
    control = np.expm1(exponent * log_weights) / exponent if exponent > 0 else log_weights
    weighted = weighted - _slope(weighted, control) * control
    risk = float(weighted.mean())
    risk += _slope(weighted, error) * (1.0 - source_confidence - float(error.mean()))
    return 1.0 - risk


def solve_transcal(
    target_logits: Logits,
    log_weights: NDArray[np.float64],
    wrong: Correct,
    *,
    source_confidence: float,
    lower: float,
    bias: bool = True,
    variance: bool = True,
    start: tuple[float, float] = START,
) -> TransCalSolution:
    """Minimise ``|mean p_max(z / T) − estimated accuracy(λ)|`` over ``T >= lower``, λ in [0, 1].

    Args:
        target_logits: ``(m, k)``.
        log_weights: ``(n,)`` of the source samples.
        wrong: ``(n,)`` of the source samples.
        source_confidence: See :func:`estimated_accuracy`.
        lower: Smallest temperature allowed; there is no largest.
        bias: Whether λ is sought; it is one otherwise.
        variance: See :func:`estimated_accuracy`.
        start: T and λ at the start.
    """

    # Differences in λ ask for the same T again, and a pass over the target is the cost of it all.
    @functools.lru_cache(maxsize=4)
    def confidence(temperature: float) -> float:
        return float(p_max(target_logits, temperature).mean())

    def accuracy(exponent: float) -> float:
        return estimated_accuracy(
            log_weights,
            wrong,
            exponent if bias else 1.0,
            source_confidence=source_confidence,
            variance=variance,
        )

    def objective(x: NDArray[np.float64]) -> float:
        return abs(confidence(float(x[0])) - accuracy(float(x[1])))

    with warnings.catch_warnings():
        # Some versions of scipy tell of steps outside the bounds that they then mend themselves.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = minimize(
            objective, np.array(start), method="SLSQP", bounds=((lower, None), (0.0, 1.0))
        )
    temperature, exponent = float(found.x[0]), float(found.x[1])
    return TransCalSolution(
        temperature,
        exponent if bias else 1.0,
        accuracy(exponent),
        confidence(temperature),
        bool(found.success),
        str(found.message),
    )


def _slope(values: NDArray[np.float64], control: NDArray[np.float64]) -> float:
    """``Cov(values, control) / Var(control)``, and zero where the control does not vary."""
    centred = control - control.mean()
    spread = float(centred @ centred)
    if spread <= _ROUNDING**2 * float(control @ control):
        return 0.0
    return float(values @ centred) / spread
