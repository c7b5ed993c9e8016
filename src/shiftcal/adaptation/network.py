"""The network that is trained: backbone, bottleneck and head, and the loss on top of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from shiftcal.adaptation._torch import functional, nn, torch
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.losses._joined import joined
from shiftcal.adaptation.passes import Pass, halves
from shiftcal.adaptation.straight import straight


class Classifier(nn.Module):
    """Images, or frozen features of them, to logits.

    Args:
        backbone: From images to features ``(b, n_features)``; ``None`` if the inputs are features.
        n_features: How many there are.
        n_classes: Columns of the logits.
        trainer: Makes the bottleneck and the head.
        width: Features after the bottleneck; 0 is none.

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
        features = straight(self.bottleneck, x)
        return Pass(features, straight(self.head, features))

    def forward(self, x: Any) -> Any:
        """Logits ``(b, n_classes)``."""
        return self.both(x).logits


class Losses(NamedTuple):
    """The losses of a batch, scalars.

    Attributes:
        total: What is minimised.
        classification: Cross-entropy on the source.
        transfer: Transfer loss, before it is multiplied; 0 if the trainer looks at no target.
    """

    total: Any
    classification: Any
    transfer: Any


class Objective(nn.Module):
    """A classifier with what is trained along, from a batch to its losses.

    All of a step's forward pass is one call, so that torch's data-parallel wrapper takes it.

    Args:
        classifier: The network.
        trainer: Its loss.
        extra: What :meth:`Trainer.extra` made, or ``None``.
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
        ours, theirs = halves(self._both(source, target), source.shape[0])
        loss = functional.cross_entropy(ours.logits, labels)
        transfer = self.trainer.transfer(ours, theirs, self.extra, step)
        return Losses(torch.add(loss, transfer, alpha=self.trainer.trade_off), loss, transfer)

    def _both(self, source: Any, target: Any) -> Pass:
        backbone = self.classifier.backbone
        if self.trainer.joint:
            x = backbone(joined(source, target))
        else:
            x = joined(backbone(source), backbone(target))
        return self.classifier.after_backbone(x)


def make_objective(
    trainer: Trainer, backbone: Any, n_features: int, n_classes: int, *, width: int
) -> Objective:
    """A new network and what is trained along with it; weights are drawn from torch's generator."""
    classifier = Classifier(backbone, n_features, n_classes, trainer=trainer, width=width)
    return Objective(classifier, trainer, trainer.extra(classifier.width, n_classes))
