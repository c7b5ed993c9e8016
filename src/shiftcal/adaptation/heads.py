"""Bottlenecks, heads and the domain discriminator, with their first weights."""

from __future__ import annotations

import math
from typing import Any

from shiftcal.adaptation._torch import nn, torch

_HALF = 0.5


def linear_bottleneck(
    n_in: int, width: int, *, norm: bool = True, apart: bool = False, dropout: float = 0.0
) -> Any:
    """A linear layer, batch normalisation if asked for, ReLU, dropout if asked for.

    Args:
        n_in: Features that come.
        width: Features that go.
        norm: Whether there is batch normalisation.
        apart: Whether each domain has its own batch statistics, :class:`ApartBatchNorm1d`.
        dropout: Probability that a feature becomes 0 in training; 0 is no dropout.
    """
    layers = [nn.Linear(n_in, width)]
    if norm:
        layers.append(ApartBatchNorm1d(width) if apart else nn.BatchNorm1d(width))
    layers.append(nn.ReLU())
    if dropout:
        layers.append(Dropout(dropout))
    return nn.Sequential(*layers)


class ApartBatchNorm1d(nn.BatchNorm1d):
    """Batch normalisation of a batch whose first half is the source and second half the target.

    In training it is that of the one and then of the other, each with its own statistics; the
    layers around it still go over both at once. Outside of training it is the usual one.
    """

    def forward(self, x: Any) -> Any:
        """``x``, normalised, in its order."""
        if not self.training:
            return super().forward(x)
        source, target = x.chunk(2)
        return torch.cat((super().forward(source), super().forward(target)))


def norm_preserving_bottleneck(n_in: int, width: int, *, dropout: float) -> Any:
    """A linear layer, batch normalisation apart, ReLU, and dropout that keeps the expected norm.

    All first weights are normal with deviation 0.01, those of the normalisation around 1.
    """
    bottleneck = linear_bottleneck(n_in, width, apart=True)
    bottleneck.append(NormPreservingDropout(dropout))
    draw_layers(bottleneck, deviation=0.01, bias_deviation=0.01)
    nn.init.normal_(bottleneck[1].weight, 1.0, 0.01)
    return bottleneck


class Dropout(nn.Dropout):
    """Torch's dropout, which on a processor draws its zeros in a fraction of the time."""

    def forward(self, x: Any) -> Any:
        """``x`` itself, unless in training."""
        if self.training and x.device.type == "cpu" and 0 < self.p < 1:
            return _dropped(x, self.p, 1 / (1 - self.p))
        return super().forward(x)


class NormPreservingDropout(nn.Module):
    """Dropout whose expected squared norm, in training, is that of its input.

    What is kept is divided by ``sqrt(1 - rate)`` instead of ``1 - rate``.

    Args:
        rate: Probability that an entry becomes 0.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Any) -> Any:
        """``x`` itself, unless in training."""
        return _dropped(x, self.rate, 1 / math.sqrt(1 - self.rate)) if self.training else x


def _dropped(x: Any, rate: float, scale: float) -> Any:
    """``x`` times ``scale`` where a number is kept, and 0 elsewhere."""
    if rate == _HALF and x.device.type == "cpu":
        return x * _coins(x).mul_(scale)
    return x * torch.rand(x.shape, device=x.device).ge_(rate).mul_(scale).to(x.dtype)


def _coins(x: Any) -> Any:
    """0 or 1 for every number of ``x``, a random bit each: eight bytes are drawn at a time."""
    n = x.numel()
    words = torch.empty(-(-n // 8), dtype=torch.int64).random_(-(2**63), None)
    return words.view(torch.uint8)[:n].view(x.shape).bitwise_and_(1).to(x.dtype)


def linear_head(width: int, n_classes: int) -> Any:
    """One linear layer."""
    return nn.Linear(width, n_classes)


def two_layer_head(n_in: int, width: int, n_classes: int, *, dropout: float) -> Any:
    """Two linear layers with ReLU and dropout between them."""
    return nn.Sequential(
        nn.Linear(n_in, width), nn.ReLU(), Dropout(dropout), nn.Linear(width, n_classes)
    )


def discriminator(n_in: int, hidden: int) -> Any:
    """Two hidden layers with batch normalisation and ReLU, to one logit: source is positive."""
    return nn.Sequential(
        *linear_bottleneck(n_in, hidden), *linear_bottleneck(hidden, hidden), nn.Linear(hidden, 1)
    )


def draw_layers(
    module: Any, *, deviation: float, bias: float = 0.0, bias_deviation: float = 0.0
) -> None:
    """Draw the first weights of all linear layers of a new module anew.

    Args:
        module: A module that nothing has been done with.
        deviation: Standard deviation of the weights, around 0.
        bias: Mean of the biases.
        bias_deviation: Their standard deviation.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0.0, deviation)
            nn.init.normal_(layer.bias, bias, bias_deviation)
