"""A conditional discriminator and its loss in one piece, on a processor.

Most of what a discriminator does in a step of a millisecond is on matrices of a few thousand
numbers: there every operation that autograd records costs more than its arithmetic.
"""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import nn, torch

_LAYERS = (nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear)


def takes(discriminator: Any, probabilities: Any, features: Any) -> bool:
    """Whether :func:`adversarial_loss` can be had: of these layers, in training, on a processor."""
    layers = tuple(discriminator)
    return (
        discriminator.training
        and features.device.type == "cpu"
        and features.dtype in (torch.float32, torch.float64)
        and tuple(map(type, layers)) == _LAYERS
        and probabilities.dtype == layers[0].weight.dtype == features.dtype
        and features.shape[0] > 2
        and not torch.is_autocast_enabled("cpu")
    )


def adversarial_loss(
    discriminator: Any, probabilities: Any, features: Any, weights: Any, *, reversal: float
) -> Any:
    """What ``domain_loss`` says of a discriminator of ``outer``, and the gradients of that.

    The outer product is never formed. With the first weights as ``W``, ``(h * k, d)``, the first
    layer is ``f Wᵀ``, summed over the classes with the probabilities. With its gradient ``g`` and
    ``q`` all products of ``g`` and the probabilities, ``(n, h * k)``, the weights' gradient is
    ``qᵀ f``, and the features' is ``q W`` times ``-reversal``: as many multiplications, on smaller
    matrices. No gradient goes to the probabilities.

    Args:
        discriminator: As :func:`takes` wants it. Its running statistics are moved on.
        probabilities: Of source and target together, ``(n, k)``.
        features: The same, ``(n, d)``.
        weights: ``(n,)``; ``None`` is 1 for each.
        reversal: 1 turns the features' gradient around, 0 gives them none.
    """
    first, norm, _, second, other, _, last = discriminator
    parameters = (
        *(first.weight, first.bias, norm.weight, norm.bias),
        *(second.weight, second.bias, other.weight, other.bias),
        *(last.weight, last.bias),
    )
    given = (probabilities, weights, -reversal, (norm, other))
    return _Adversary.apply(given, features, *parameters)


class _Adversary(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given: Any, features: Any, *parameters: Any) -> Any:
        from shiftcal.adaptation.losses import discriminator_kernels as kernels

        probabilities, weights, factor, norms = given
        w1, b1, g1, c1, w2, b2, g2, c2, w3, b3 = (one.detach() for one in parameters)
        p, last = probabilities.numpy(), (w3[0].numpy(), b3.numpy())
        weights = features.new_empty(0) if weights is None else weights.to(features.dtype)
        first, second = _layer(g1, c1, norms[0]), _layer(g2, c2, norms[1])
        products = features @ w1.view(-1, features.shape[1]).t()
        n, d = features.shape[0], b1.shape[0]

        found, h = features.new_empty((n + 2, d)).numpy(), features.new_empty((n, d))
        rates = norms[0].eps, norms[0].momentum
        kernels.first_layer(products.numpy(), p, b1.numpy(), first, rates, found, h.numpy())

        z = torch.addmm(b2, h, w2.t())
        back, slopes = torch.empty_like(z), z.new_empty((2, 3, d))
        of_last, rates = z.new_empty(d + 1), (norms[1].eps, norms[1].momentum)
        value = kernels.told_apart(
            *(z.numpy(), second, rates, last, weights.numpy()),
            *(back.numpy(), slopes[1].numpy(), of_last.numpy()),
        )
        each, by_h = products, back @ w2  # nobody needs the products any more
        kernels.first_back(
            found, h.numpy(), first[0], p, slopes[0].numpy(), by_h.numpy(), each.numpy()
        )
        ctx.save_for_backward(features, parameters[0])
        (g1, c1, b1), (g2, c2, b2) = slopes
        # As they are kept here, autograd copies them before it adds anything to them.
        ctx.small = b1, g1, c1, back.t() @ h, b2, g2, c2, of_last[:-1].unsqueeze(0), of_last[-1:]
        ctx.rest = factor, each
        return z.new_full((), value)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        features, w1 = ctx.saved_tensors
        (factor, each), small = ctx.rest, ctx.small
        if grad.item() != 1:
            each, small = each * grad, [one * grad for one in small]
        return (
            None,
            (each @ w1.view(-1, features.shape[1])).mul_(factor),
            (each.t() @ features).view_as(w1),
            *small,
        )


def _layer(weight: Any, bias: Any, norm: Any) -> tuple[Any, ...]:
    """A hidden layer as the kernels want it."""
    buffers = norm.running_mean, norm.running_var, norm.num_batches_tracked
    return tuple(one.numpy() for one in (weight, bias, *buffers))
