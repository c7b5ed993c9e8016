"""The network that is trained: backbone, bottleneck and head, and the loss on top of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from shiftcal.adaptation.losses import functional, nn, torch
from shiftcal.adaptation.trainer import Pass, Trainer


def linear_bottleneck(
    n_in: int, width: int, *, norm: bool = True, apart: bool = False, dropout: float = 0.0
) -> Any:
    """A linear layer, batch normalisation, ReLU, dropout.

    Args:
        n_in: Input features.
        width: Output features.
        norm: Whether there is batch normalisation.
        apart: Whether each domain has its own batch statistics, :class:`ApartBatchNorm1d`.
        dropout: Probability that a feature becomes 0 in training; 0 is no dropout layer.
    """
    layers = [nn.Linear(n_in, width)]
    if norm:
        layers.append(ApartBatchNorm1d(width) if apart else nn.BatchNorm1d(width))
    layers.append(nn.ReLU())
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


class ApartBatchNorm1d(nn.BatchNorm1d):
    """Batch normalisation of a batch whose first half is the source and second half the target.

    In training each half is normalised with its own statistics, the source first; in evaluation
    it is the usual one.
    """

    def forward(self, x: Any) -> Any:
        """``x``, normalised, in its order."""
        if not self.training:
            return super().forward(x)
        source, target = x.chunk(2)
        return torch.cat((super().forward(source), super().forward(target)))


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
        if not self.training:
            return x
        return functional.dropout(x, self.rate) * math.sqrt(1 - self.rate)


def norm_preserving_bottleneck(n_in: int, width: int, *, dropout: float) -> Any:
    """A linear layer, batch normalisation apart, ReLU, and dropout that keeps the expected norm.

    All initial weights are normal with deviation 0.01, those of the normalisation around 1.
    """
    bottleneck = linear_bottleneck(n_in, width, apart=True)
    bottleneck.append(NormPreservingDropout(dropout))
    draw_layers(bottleneck, deviation=0.01, bias_deviation=0.01)
    nn.init.normal_(bottleneck[1].weight, 1.0, 0.01)
    return bottleneck


def two_layer_head(n_in: int, width: int, n_classes: int, *, dropout: float) -> Any:
    """Two linear layers with ReLU and dropout between them."""
    return nn.Sequential(
        nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, n_classes)
    )


def discriminator(n_in: int, hidden: int) -> Any:
    """Two hidden layers with batch normalisation and ReLU, to one logit: source is positive."""
    return nn.Sequential(
        *linear_bottleneck(n_in, hidden), *linear_bottleneck(hidden, hidden), nn.Linear(hidden, 1)
    )


def draw_layers(
    module: Any, *, deviation: float, bias: float = 0.0, bias_deviation: float = 0.0
) -> None:
    """Draw the initial weights of all linear layers of a new module from normal distributions.

    Args:
        module: The module.
        deviation: Standard deviation of the weights, around 0.
        bias: Mean of the biases.
        bias_deviation: Their standard deviation.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0.0, deviation)
            nn.init.normal_(layer.bias, bias, bias_deviation)


class Classifier(nn.Module):
    """Images, or frozen features of them, to logits.

    Args:
        backbone: From images to features ``(b, n_features)``; ``None`` if the inputs are features.
        n_features: Number of backbone features.
        n_classes: Columns of the logits.
        trainer: Makes the bottleneck and the head.
        width: Features after the bottleneck; 0 is no bottleneck.

    Attributes:
        width: Features that the head takes.
    """

    def __init__(
        self, backbone: Any, n_features: int, n_classes: int, *, trainer: Trainer, width: int
    ) -> None:
        super().__init__()
        self.backbone = nn.Identity() if backbone is None else backbone
        self.bottleneck = trainer.bottleneck(n_features, width) if width else nn.Identity()
        self.width = width or n_features
        self.head = trainer.head(self.width, n_classes)

    def both(self, x: Any) -> Pass:
        """Features after the bottleneck, and logits."""
        return self.after_backbone(self.backbone(x))

    def after_backbone(self, x: Any) -> Pass:
        """The same from the backbone's features ``(b, n_features)``."""
        features = self.bottleneck(x)
        return Pass(features, self.head(features))

    def forward(self, x: Any) -> Any:
        """Logits ``(b, n_classes)``."""
        return self.both(x).logits


class Losses(NamedTuple):
    """The losses of a batch, scalars.

    Attributes:
        total: What is minimised.
        classification: Cross-entropy on the source.
        transfer: Transfer loss, before ``trade_off``; 0 if the trainer uses no target.
    """

    total: Any
    classification: Any
    transfer: Any


class Objective(nn.Module):
    """A classifier with the modules trained along with it, from a batch to its losses.

    Args:
        classifier: The network.
        trainer: Its loss.
        extra: What :meth:`Trainer.extra` returned.
    """

    def __init__(self, classifier: Classifier, trainer: Trainer, extra: Any) -> None:
        super().__init__()
        self.classifier = classifier
        self.trainer = trainer
        self.extra = extra

    def forward(self, source: Any, labels: Any, target: Any, step: int) -> Losses:
        """The losses of a batch of source inputs with labels and of target inputs."""
        if not self.trainer.adapts:
            loss = functional.cross_entropy(self.classifier(source), labels)
            return Losses(loss, loss, torch.zeros((), device=loss.device))
        backbone = self.classifier.backbone
        if self.trainer.joint:
            x = backbone(torch.cat((source, target)))
        else:
            x = torch.cat((backbone(source), backbone(target)))
        features, logits = self.classifier.after_backbone(x)
        n = len(source)
        loss = functional.cross_entropy(logits[:n], labels)
        transfer = self.trainer.transfer(
            Pass(features[:n], logits[:n]), Pass(features[n:], logits[n:]), self.extra, step
        )
        return Losses(loss + self.trainer.trade_off * transfer, loss, transfer)


def make_objective(
    trainer: Trainer, backbone: Any, n_features: int, n_classes: int, *, width: int
) -> Objective:
    """A new network with its loss; weights are drawn from torch's generator."""
    classifier = Classifier(backbone, n_features, n_classes, trainer=trainer, width=width)
    return Objective(classifier, trainer, trainer.extra(classifier.width, n_classes))
