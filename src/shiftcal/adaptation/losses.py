"""The transfer losses: tensors in, a scalar out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any

from shiftcal.errors import require

# PyTorch: the other modules import it from here, so that a missing one is reported in one place.
torch: Any = require("torch", extra="torch", needed_by="domain adaptation")
nn: Any = require("torch.nn", extra="torch", needed_by="domain adaptation")
functional: Any = require("torch.nn.functional", extra="torch", needed_by="domain adaptation")

# Variances of the kernels, in mean squared distances.
ALPHAS = tuple(2.0**k for k in range(-3, 2))

# A smaller sum of squared distances counts as this, so that kernel widths are never 0.
_TINY = 1e-30


def _in_float32(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Compute a loss outside autocast, with half-precision inputs widened to float32."""

    @wraps(loss)
    def widened(*inputs: Any, **options: Any) -> Any:
        half = (torch.float16, torch.bfloat16)
        with torch.autocast(inputs[0].device.type, enabled=False):
            inputs = tuple(x.float() if getattr(x, "dtype", None) in half else x for x in inputs)
            return loss(*inputs, **options)

    return widened


def squared_distances(features: Any) -> Any:
    """``||x_i - x_j||²`` of all rows, ``(n, n)``, with exact zeros on the diagonal.

    Computed from inner products: of rows far from the origin subtract a common point first, or
    digits cancel. Rounding can make an entry slightly negative.
    """
    products = features @ features.t()
    norms = products.diagonal()
    return norms.unsqueeze(1) + norms - 2 * products


def gaussian(sq_dist: Any, variance: Any) -> Any:
    """``exp(-d² / (2 variance))`` of squared distances."""
    return torch.exp(sq_dist / (-2 * variance))


def multi_gaussian(features: Any, alphas: Sequence[float] = ALPHAS) -> Any:
    """The sum of Gaussian kernels between all rows, ``(n, n)``.

    Kernel ``a`` has the variance ``alphas[a]`` times the mean of all squared distances, including
    those of rows to themselves; no gradient flows through it.

    Args:
        features: ``(n, d)``.
        alphas: One for each kernel.
    """
    sq_dist = squared_distances(features - features.detach()[0])
    mean = sq_dist.detach().sum().clamp_min(_TINY) / sq_dist.numel()
    return sum(gaussian(sq_dist, alpha * mean) for alpha in alphas)


@lru_cache(maxsize=16)
def _pair_weights(b: int, *, linear: bool, peak: float, dtype: Any, device: Any) -> Any:
    """Weights ``(2b, 2b)`` by which the sum of a kernel matrix is the discrepancy plus 2 / (b - 1).

    A kernel is ``peak`` on the diagonal whatever the features are, so weights there add a constant.
    """
    with torch.inference_mode(False):
        if linear:
            # Row i counts with row i + 1 of both domains, cyclically.
            after = (torch.arange(b) + 1) % b
            pairs = torch.cat((after, after + b, after + b, after))
            signs = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64).repeat_interleave(b)
            weights = torch.zeros(2 * b, 2 * b, dtype=torch.float64)
            rows = torch.arange(2 * b).repeat(2)
            weights.index_put_((rows, pairs), signs / b, accumulate=True)
            weights = (weights + weights.t()) / 2
        else:
            domain = torch.arange(2 * b) >= b
            same = (domain.unsqueeze(1) == domain).double()
            weights = same * (1 / (b * (b - 1)) + 1 / b**2) - 1 / b**2
        weights.fill_diagonal_(2 / (b - 1) / (2 * b * peak))
        return weights.to(dtype=dtype, device=device)


def _discrepancy(kernel: Any, *, linear: bool, peak: float) -> Any:
    dtype, device = kernel.dtype, kernel.device
    b = len(kernel) // 2
    return (kernel * _pair_weights(b, linear=linear, peak=peak, dtype=dtype, device=device)).sum()


@_in_float32
def mk_mmd(
    source: Any, target: Any, *, linear: bool = True, alphas: Sequence[float] = ALPHAS
) -> Any:
    """How far two samples are apart, by the kernel ``k`` of :func:`multi_gaussian`.

    The linear estimate is the mean over the rows ``i``, cyclically, of
    ``k(s_i, s_i+1) + k(t_i, t_i+1) - k(s_i, t_i+1) - k(s_i+1, t_i)``. The quadratic one is the mean
    of ``k`` over pairs of different source rows, plus that of different target rows, minus twice
    that of pairs of both. Each has 2 / (b - 1) added, as in the reference library.

    Args:
        source: ``(b, d)``.
        target: ``(b, d)``.
        linear: The first estimate; else the second.
        alphas: Variances of the kernels, in mean squared distances.
    """
    kernel = multi_gaussian(torch.cat((source, target)), alphas)
    return _discrepancy(kernel, linear=linear, peak=len(alphas))


@_in_float32
def jmmd(features: Any, outputs: Any, *, linear: bool = False, sigma: float = 0.92) -> Any:
    """How far source and target are apart in features and predictions together.

    The estimates are those of :func:`mk_mmd`; the kernel is the product of :func:`multi_gaussian`
    of the features and ``exp(-||p - q||² / (2 sigma²))`` of the predictions.

    Args:
        features: Rows of the source, then as many of the target, ``(2b, d)``.
        outputs: Softmax outputs of the same rows, ``(2b, k)``.
        linear: The linear estimate, else the quadratic one.
        sigma: Width of the predictions' kernel.
    """
    kernel = multi_gaussian(features) * gaussian(squared_distances(outputs), sigma**2)
    return _discrepancy(kernel, linear=linear, peak=len(ALPHAS))


@_in_float32
def class_confusion(logits: Any, temperature: float = 2.5) -> Any:
    """How much of a class's predictions goes to other classes, averaged over the classes.

    With ``p = softmax(z / T)`` and weights ``w = 1 + exp(-H(p))`` that favour confident rows and
    have no gradient, the class confusion is ``C = Pᵀ diag(w) P`` with rows divided by their sums,
    and the loss is the mean over the classes of what lies off its diagonal. Rows of ``P`` sum to
    1, so it is ``1 - mean_j (sum_i w_i p_ij²) / (sum_i w_i p_ij)``.

    Args:
        logits: Of the target, ``(b, k)``.
        temperature: ``T``.
    """
    p = (logits / temperature).softmax(1)
    w = 1 + torch.special.xlogy(p, p).sum(1).exp().detach()
    mass = (w @ p).clamp_min(torch.finfo(p.dtype).tiny)
    return 1 - ((w @ p.square()) / mass).mean()


@_in_float32
def margin_disparity(
    source_logits: Any, source_adv: Any, target_logits: Any, target_adv: Any, *, margin: float = 4.0
) -> Any:
    """What the adversarial head minimises, to agree on the source and to disagree on the target.

    With ``y`` the class that the main head predicts and ``p`` the adversarial head's softmax,
    ``-margin mean_s log p[y] - mean_t log(1 - p[y] + 1e-6)``.

    Args:
        source_logits: Of the main head, ``(b, k)``.
        source_adv: Of the adversarial head.
        target_logits: Of the main head, for as many rows.
        target_adv: Of the adversarial head.
        margin: Weight of the agreement on the source.
    """
    agreement = functional.cross_entropy(source_adv, source_logits.argmax(1))
    p = target_adv.softmax(1)
    # 1 - p[y] as the sum of the other probabilities keeps its digits near p[y] = 1.
    others = p.scatter(1, target_logits.argmax(1, keepdim=True), 0).sum(1)
    return margin * agreement - (others + 1e-6).log().mean()


@_in_float32
def stepwise_norm(features: Any, *, delta: float = 1.0, domains: int = 1) -> Any:
    """``mean (||f|| - (||f||* + delta))²`` of each domain, summed; ``||f||*`` has no gradient.

    The value of each is always ``delta²``; its gradient ``-2 delta f / (b ||f||)`` lengthens every
    row alike. A row of zeros has no direction and gets no gradient.

    Args:
        features: ``(n, d)``.
        delta: The step.
        domains: Number of domains, with ``b = n / domains`` rows each.
    """
    norms = torch.linalg.vector_norm(features, dim=1)
    return domains * (norms - norms.detach() - delta).square().mean()


def outer(probabilities: Any, features: Any) -> Any:
    """Every probability of a row times every feature, ``(b, k * d)``, class by class."""
    return torch.bmm(probabilities.unsqueeze(2), features.unsqueeze(1)).flatten(1)


def entropy_weights(probabilities: Any) -> Any:
    """``1 + exp(-H(p))`` of every row divided by their mean, ``(n,)``; without gradient."""
    with torch.no_grad():
        weights = 1 + torch.special.xlogy(probabilities, probabilities).sum(1).exp()
        return weights / weights.mean()


def domain_loss(logits: Any, weights: Any = None) -> Any:
    """Binary cross-entropy of a discriminator that should give 1 for the source, 0 for the target.

    Args:
        logits: Before the sigmoid, ``(2b, 1)`` or ``(2b,)``, those of the source first.
        weights: ``(2b,)``, with mean 1; ``None`` is 1 for each.
    """
    wanted = torch.ones_like(logits).flatten()
    wanted[len(wanted) // 2 :] = 0
    return functional.binary_cross_entropy_with_logits(logits.flatten(), wanted, weights)


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, coefficient: float) -> Any:
        ctx.factor = -coefficient
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None


def reverse(x: Any, coefficient: float) -> Any:
    """``x`` itself, whose gradient is multiplied by ``-coefficient`` in the backward pass."""
    return _Reverse.apply(x, coefficient)


def warm_start(step: int, limit: float, warm_up: int) -> float:
    """A coefficient that grows with the steps from 0 to a limit: ``limit tanh(step / 2 warm_up)``.

    The reference writes it ``limit (2 / (1 + exp(-step / warm_up)) - 1)``.
    """
    return limit * math.tanh(0.5 * step / warm_up)
