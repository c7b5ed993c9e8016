"""Maximum mean discrepancy with Gaussian kernels of several widths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.losses._analytic import Outcome, analytic
from shiftcal.adaptation.losses._joined import joined
from shiftcal.adaptation.losses._pairs import check_batches, next_rows, offset, pair_weights
from shiftcal.adaptation.losses.kernels import (
    ALPHAS,
    kernel_rates,
    multi_kernel,
    squared_distances,
    weighted_pull,
)


def mk_mmd(
    source: Any, target: Any, *, linear: bool = True, alphas: Sequence[float] = ALPHAS
) -> Any:
    """How far two samples are apart, by the kernel ``k`` of :func:`multi_gaussian`.

    The linear-time estimate is the mean over the rows ``i``, cyclically, of
    ``k(s_i, s_i+1) + k(t_i, t_i+1) - k(s_i, t_i+1) - k(s_i+1, t_i)``. The quadratic one is the mean
    of ``k`` over pairs of different source rows, plus that of different target rows, minus twice
    that of pairs of both. Each has 2 / (b - 1) added, as in the reference library. The kernels'
    widths come from both samples, and no gradient goes through them.

    Args:
        source: ``(b, d)``.
        target: ``(b, d)``.
        linear: The first estimate, which is noisy and cheap; else the second.
        alphas: Variances of the kernels, in mean squared distances.

    Raises:
        InputError: If the shapes differ, or there is one row.
    """
    check_batches(source, target)
    widths = tuple(alphas)
    estimate = _linear if linear else _quadratic
    return analytic(lambda x: estimate(x, widths), joined(source, target))


def _linear(x: Any, alphas: tuple[float, ...]) -> Outcome:
    b, d = x.shape[0] // 2, x.shape[1]
    other, signs = next_rows(b, x.dtype, x.device)
    apart = x - x.index_select(0, other).view(2, 2 * b, d)
    sq_dist = torch.linalg.vecdot(apart, apart).flatten()
    # The mean of all squared distances is twice that from the mean.
    from_mean = torch.sub(x, x.sum(0), alpha=0.5 / b).flatten()
    rates = kernel_rates(torch.dot(from_mean, from_mean), b, alphas)
    kernels = multi_kernel(sq_dist, rates)
    value = torch.dot(kernels.sum(0), signs).add_(offset(b))
    pull = torch.addmv(signs, kernels.t(), rates, beta=0, alpha=2).mul_(signs)
    apart.mul_(pull.view(2, 2 * b, 1))
    gradient = (apart[0] + apart[1]).index_add_(0, other, apart.view(4 * b, d), alpha=-1)
    return value, (gradient,)


def _quadratic(features: Any, alphas: tuple[float, ...]) -> Outcome:
    b = len(features) // 2
    x = features - features[0]
    weights = pair_weights(
        b, linear=False, peak=len(alphas), dtype=x.dtype, device=x.device
    ).flatten()
    sq_dist = squared_distances(x).flatten()
    rates = kernel_rates(sq_dist.sum(), len(sq_dist), alphas)
    kernels = multi_kernel(sq_dist, rates)
    value = torch.dot(kernels.sum(0), weights)
    pull = kernels.t().mv(rates).mul_(weights)
    return value, (weighted_pull(x, pull.view(2 * b, 2 * b)),)
