"""Stepwise adaptive feature norm: features grow a step at a time."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.losses._analytic import Outcome, analytic

# Shorter rows count as this long, so that none is pulled harder than by its own direction.
_TINY = 1e-12


def stepwise_norm(features: Any, *, delta: float = 1.0, domains: int = 1) -> Any:
    """``mean (||f|| - (||f||* + delta))²`` of each domain, added up; ``||f||*`` has no gradient.

    The value of each is always ``delta²``; what counts is its gradient ``-2 delta f / (b ||f||)``,
    which lengthens every row alike. A row of zeros has no direction, and gets no gradient.

    Args:
        features: ``(n, d)``.
        delta: The step.
        domains: Of how many domains they are, with ``b = n / domains`` rows each.
    """

    def rule(f: Any) -> Outcome:
        norms = torch.linalg.vector_norm(f, dim=1, keepdim=True).clamp_min_(_TINY)
        gradient = (f / norms).mul_(-2 * delta * domains / f.shape[0])
        return f.new_full((), domains * delta**2), (gradient,)

    return analytic(rule, features)
