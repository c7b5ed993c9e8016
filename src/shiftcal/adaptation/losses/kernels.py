"""Gaussian kernels of several widths, which follow the data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from shiftcal.adaptation._torch import torch

ALPHAS = tuple(2.0**k for k in range(-3, 2))

# Below it squared distances count as 0: rates stay finite, and all kernels are at their top.
TINY = 1e-30


def gaussian(sq_dist: Any, variance: Any) -> Any:
    """``exp(-d² / (2 variance))``.

    Args:
        sq_dist: Squared distances, of any shape.
        variance: A number, or a tensor that goes with them.
    """
    return torch.exp(sq_dist / (-2 * variance))


def multi_gaussian(features: Any, alphas: Sequence[float] = ALPHAS) -> Any:
    """The sum of Gaussian kernels between all rows.

    Kernel number ``a`` has the variance ``alphas[a]`` times the mean of all squared distances,
    those of rows to themselves included, through which no gradient goes.

    Args:
        features: ``(n, d)``.
        alphas: One for every kernel.

    Returns:
        ``(n, n)``, with ``len(alphas)`` on the diagonal.
    """
    sq_dist = squared_distances(features - features.detach().mean(0))
    rates = kernel_rates(sq_dist.detach().sum(), sq_dist.numel(), tuple(alphas))
    return multi_kernel(sq_dist.flatten(), rates).sum(0).view_as(sq_dist)


def squared_distances(features: Any) -> Any:
    """``||x_i - x_j||²`` of all rows as ``(n, n)``, with exact zeros on the diagonal.

    Found from inner products, and below 0 by a rounding error now and then. Of rows that lie far
    from the origin subtract a common point first, or the digits cancel.
    """
    products = features @ features.t()
    norms = products.diagonal()
    return (norms.unsqueeze(1) + norms).sub(products, alpha=2)


def kernel_rates(total: Any, count: int, alphas: tuple[float, ...]) -> Any:
    """``-1 / (2 variance)`` of every kernel, ``(a,)``, from ``count`` squared distances' sum."""
    return _unit_rates(alphas, count, total.dtype, total.device) / total.clamp_min(TINY)


def multi_kernel(sq_dist: Any, rates: Any) -> Any:
    """``exp(rate d²)`` of ``(m,)`` squared distances for each of the rates, ``(a, m)``."""
    return torch.outer(rates, sq_dist).exp_()


def weighted_pull(features: Any, weights: Any) -> Any:
    """The gradient of ``sum_ij w_ij ||x_i - x_j||²``, ``4 (x_i sum_j w_ij - sum_j w_ij x_j)``.

    Args:
        features: ``(n, d)``, near the origin for accuracy.
        weights: ``(n, n)``, symmetric.
    """
    own = features * weights.sum(1, keepdim=True)
    return torch.addmm(own, weights, features, beta=4, alpha=-4)


@lru_cache(maxsize=16)
def _unit_rates(alphas: tuple[float, ...], count: int, dtype: Any, device: Any) -> Any:
    with torch.inference_mode(False):
        return torch.tensor([-0.5 * count / alpha for alpha in alphas], dtype=dtype, device=device)
