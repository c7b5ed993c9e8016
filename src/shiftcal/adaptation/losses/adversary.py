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
        and len(features) > 2
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
        from shiftcal.adaptation.losses.discriminator_kernels import told_apart

        probabilities, weights, factor, norms = given
        w1, b1, g1, c1, w2, b2, g2, c2, w3, b3 = (one.detach() for one in parameters)
        z1 = _contracted(features @ w1.view(-1, features.shape[1]).t(), probabilities, b1)
        h1, stats1 = _normalised(z1, g1, c1, norms[0])
        z2 = torch.addmm(b2, h1, w2.t())
        h2, stats2 = _normalised(z2, g2, c2, norms[1])
        logits = torch.addmv(b3, h2, w3[0])
        slopes = torch.empty_like(logits)
        counts = logits.new_empty(0) if weights is None else weights.to(logits.dtype)
        value = told_apart(logits.numpy(), counts.numpy(), slopes.numpy())
        back2, of_norm2 = _back(torch.outer(slopes, w3[0]), z2, h2, g2, stats2)
        back1, of_norm1 = _back(back2 @ w2, z1, h1, g1, stats1)
        ctx.save_for_backward(features, parameters[0])
        ctx.rest = probabilities, factor
        ctx.found = back1, of_norm1, h1, back2, of_norm2, h2, slopes
        return logits.new_full((), value)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        features, w1 = ctx.saved_tensors
        probabilities, factor = ctx.rest
        back1, of_norm1, h1, back2, of_norm2, h2, slopes = ctx.found
        if grad.item() != 1:
            back1, of_norm1, back2, of_norm2, slopes = (
                one * grad for one in (back1, of_norm1, back2, of_norm2, slopes)
            )
        each = _expanded(back1, probabilities)
        return (
            None,
            (each @ w1.view(-1, features.shape[1])).mul_(factor),
            (each.t() @ features).view_as(w1),
            *(back1.sum(0), of_norm1[0], of_norm1[1]),
            *(back2.t() @ h1, back2.sum(0), of_norm2[0], of_norm2[1]),
            *((slopes @ h2).unsqueeze(0), slopes.sum().unsqueeze(0)),
        )


def _contracted(products: Any, probabilities: Any, bias: Any) -> Any:
    from shiftcal.adaptation.losses.discriminator_kernels import contract

    out = products.new_empty((len(products), len(bias)))
    contract(products.numpy(), probabilities.numpy(), bias.numpy(), out.numpy())
    return out


def _expanded(grad: Any, probabilities: Any) -> Any:
    from shiftcal.adaptation.losses.discriminator_kernels import expand

    out = grad.new_empty((len(grad), grad.shape[1] * probabilities.shape[1]))
    expand(grad.numpy(), probabilities.numpy(), out.numpy())
    return out


def _normalised(z: Any, weight: Any, bias: Any, norm: Any) -> tuple[Any, Any]:
    from shiftcal.adaptation.losses.discriminator_kernels import normalise

    norm.num_batches_tracked.add_(1)
    out, stats = torch.empty_like(z), z.new_empty((2, z.shape[1]))
    scale = (weight.numpy(), bias.numpy())
    running = (norm.running_mean.numpy(), norm.running_var.numpy())
    normalise(z.numpy(), scale, running, norm.eps, norm.momentum, stats.numpy(), out.numpy())
    return out, stats


def _back(grad: Any, *found: Any) -> tuple[Any, Any]:
    """Gradients by ``z`` and by the scale; what was found is ``z``, ``out``, weight and stats."""
    from shiftcal.adaptation.losses.discriminator_kernels import normalise_back

    back, slopes = torch.empty_like(grad), torch.empty_like(found[-1])
    arrays = [one.numpy() for one in (grad, *found, slopes, back)]
    normalise_back(*arrays)
    return back, slopes
