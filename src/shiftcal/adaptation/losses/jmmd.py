"""Joint maximum mean discrepancy: of features and predictions together."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.losses._analytic import Outcome, analytic
from shiftcal.adaptation.losses._pairs import check_halves, pair_weights
from shiftcal.adaptation.losses.kernels import (
    ALPHAS,
    TINY,
    kernel_rates,
    multi_kernel,
    squared_distances,
    weighted_pull,
)


def jmmd(features: Any, outputs: Any, *, linear: bool = False, sigma: float = 0.92) -> Any:
    """How far source and target are apart in features and predictions together.

    The estimates are those of :func:`~shiftcal.adaptation.losses.mmd.mk_mmd`, and the kernel is the
    product of ``multi_gaussian`` of the features and ``exp(-||p - q||² / (2 sigma²))`` of the
    predictions.

    Args:
        features: Rows of the source, then as many of the target, ``(2b, d)``.
        outputs: Softmax outputs of the same rows, ``(2b, k)``.
        linear: The linear-time estimate, else the quadratic one.
        sigma: Width of the predictions' kernel.

    Raises:
        InputError: If there are not as many rows of both domains, or only one of each.
    """
    check_halves(features, outputs)
    return analytic(lambda x, y: _rule(x, y, linear, sigma), features, outputs)


def jmmd_of_logits(features: Any, logits: Any, *, linear: bool = False, sigma: float = 0.92) -> Any:
    """:func:`jmmd` of features and the softmax of logits, with the gradient by the logits.

    It takes and raises what :func:`jmmd` does.
    """
    check_halves(features, logits)

    def rule(x: Any, z: Any) -> Outcome:
        p = z.softmax(1)
        value, (of_features, of_outputs) = _rule(x, p, linear, sigma)
        slope = of_outputs.mul_(p)
        return value, (of_features, slope.sub_(p * slope.sum(1, keepdim=True)))

    return analytic(rule, features, logits)


def _rule(features: Any, outputs: Any, linear: bool, sigma: float) -> Outcome:
    rate = -0.5 / sigma**2
    x = features - features[0]
    n = x.shape[0]
    weights = pair_weights(n // 2, linear=linear, peak=len(ALPHAS), dtype=x.dtype, device=x.device)
    joint = _compiled if x.device.type == "cpu" else _joint
    return joint(x, outputs, weights, rate)


def _compiled(x: Any, outputs: Any, weights: Any, rate: float) -> Outcome:
    from shiftcal.adaptation.losses.joint_kernels import joint_discrepancy

    n = x.shape[0]
    products, output_products = x @ x.t(), outputs @ outputs.t()
    pulls, output_pulls = torch.empty_like(products), torch.empty_like(products)
    value = joint_discrepancy(
        products.numpy(),
        output_products.numpy(),
        weights.numpy(),
        (rate, -0.5 * n * n / ALPHAS[-1], TINY),
        pulls.numpy(),
        output_pulls.numpy(),
    )
    return x.new_full((), value), (pulls @ x, output_pulls @ outputs)


def _joint(x: Any, outputs: Any, weights: Any, rate: float) -> Outcome:
    n = x.shape[0]
    sq_dist = squared_distances(x).flatten()
    rates = kernel_rates(sq_dist.sum(), n * n, ALPHAS)
    kernels = multi_kernel(sq_dist, rates)
    # The kernel of the outputs times the weight of each pair, then that of the features on top.
    weights = squared_distances(outputs).mul_(rate).exp_().mul_(weights)
    joint = kernels.sum(0).view(n, n).mul_(weights)
    pull = kernels.t().mv(rates).view(n, n).mul_(weights)
    value = joint.sum()
    return value, (weighted_pull(x, pull), weighted_pull(outputs, joint.mul_(rate)))
