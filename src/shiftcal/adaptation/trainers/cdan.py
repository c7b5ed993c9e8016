"""CDAN: a discriminator that knows the predictions cannot tell the domains apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal._checks import check_count, check_flag, check_not_negative
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Domain, together
from shiftcal.adaptation.settings import Settings


@final
@dataclass(frozen=True, kw_only=True)
class CDAN(Trainer):
    """Conditional domain adversarial network (Long et al., 2018).

    A discriminator learns the domain from the outer product of probabilities and features, by
    binary cross-entropy; the bottleneck learns the contrary, by that gradient times ``-c``. In
    iteration ``t``, ``c = reversal * (2 / (1 + exp(-t / warm_up)) - 1)``.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        entropy: Whether images with sure predictions weigh more, by ``1 + exp(-entropy)``: CDAN+E.
        hidden: Width of the discriminator's two hidden layers.
        reversal: What ``c`` tends to.
        warm_up: Iterations until it has come 46% of the way.
    """

    label: ClassVar[str] = "CDAN"
    settings: ClassVar[Settings] = Settings(
        iterations=20_000, lr=0.01, lr_gamma=1e-3, weight_decay=1e-3
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 30_000},
        "visda": {"iterations": 30_000},
        "frozen": {"iterations": 1_000, "hidden": 64, "warm_up": 300},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "hidden": 256,
            "backbone_lr": 1.0,
            "warm_up": 300,
        },
    }

    entropy: bool = False
    hidden: int = 1024
    reversal: float = 1.0
    warm_up: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.entropy, name="entropy")
        check_count(self.hidden, name="hidden")
        check_not_negative(self.reversal, name="reversal")
        check_count(self.warm_up, name="warm_up")

    def extra(self, width: int, n_classes: int) -> Any:
        """The discriminator, from ``width * n_classes`` numbers to a logit."""
        from shiftcal.adaptation.heads import discriminator

        return discriminator(width * n_classes, self.hidden)

    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """The discriminator's loss."""
        from shiftcal.adaptation.losses.adversary import adversarial_loss, takes
        from shiftcal.adaptation.losses.conditional import domain_loss, entropy_weights, outer
        from shiftcal.adaptation.losses.reversal import reverse, warm_start

        coefficient = warm_start(step, hi=self.reversal, max_iters=self.warm_up)
        features, logits = together(source, target)
        probabilities = logits.detach().softmax(dim=1)
        weights = entropy_weights(probabilities) if self.entropy else None
        if takes(extra, probabilities, features):
            return adversarial_loss(extra, probabilities, features, weights, reversal=coefficient)
        # The outer product is linear in the features: turning their gradient turns its.
        told = extra(outer(probabilities, reverse(features, coefficient)))
        ours, theirs = told.chunk(2)
        return domain_loss(ours, theirs, weights)
