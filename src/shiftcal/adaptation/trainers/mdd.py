"""MDD: no second head can agree on the source and disagree on the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal._checks import check_count, check_not_negative
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Domain, together
from shiftcal.adaptation.settings import Settings


@final
@dataclass(frozen=True, kw_only=True)
class MDD(Trainer):
    """Margin disparity discrepancy (Zhang et al., 2019).

    With ``p`` the probabilities of an adversarial head and ``i`` the class that the main head
    predicts, the transfer loss is ``-margin * mean log p_i`` on the source, minus the mean of
    ``log(1 - p_i)`` on the target. The adversarial head learns by it; the bottleneck learns the
    contrary, by that gradient times ``-c`` with ``c`` as in :class:`CDAN`.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        margin: What the source counts for, against the target.
        width: Of the hidden layer of both heads.
        reversal: What ``c`` tends to.
        warm_up: Iterations until it has come 46% of the way.
    """

    label: ClassVar[str] = "MDD"
    settings: ClassVar[Settings] = Settings(
        iterations=20_000, lr=0.004, lr_gamma=2e-4, bottleneck=1024
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 30_000, "bottleneck": 2048, "width": 2048},
        "visda": {"iterations": 30_000, "batch_size": 36, "bottleneck": 1024, "width": 1024},
        "frozen": {"iterations": 1_000, "bottleneck": 256, "width": 128, "warm_up": 300},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "backbone_lr": 1.0,
            "bottleneck": 256,
            "width": 128,
            "warm_up": 300,
        },
    }

    margin: float = 4.0
    width: int = 1024
    reversal: float = 0.1
    warm_up: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self.margin, name="margin")
        check_count(self.width, name="width")
        check_not_negative(self.reversal, name="reversal")
        check_count(self.warm_up, name="warm_up")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half."""
        from shiftcal.adaptation.heads import draw_layers, linear_bottleneck

        made = linear_bottleneck(n_in, width, dropout=0.5)
        draw_layers(made, deviation=0.005, bias=0.1)
        return made

    def head(self, width: int, n_classes: int) -> Any:
        """Linear, ReLU, dropout of one half, linear."""
        from shiftcal.adaptation.heads import draw_layers, two_layer_head

        made = two_layer_head(width, self.width, n_classes, dropout=0.5)
        draw_layers(made, deviation=0.01)
        return made

    def extra(self, width: int, n_classes: int) -> Any:
        """The adversarial head, made like the main one."""
        return self.head(width, n_classes)

    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """The adversarial head's loss."""
        from shiftcal.adaptation.losses.margin import margin_disparity
        from shiftcal.adaptation.losses.reversal import reverse, warm_start
        from shiftcal.adaptation.straight import straight

        coefficient = warm_start(step, hi=self.reversal, max_iters=self.warm_up)
        features, _ = together(source, target)
        ours, theirs = straight(extra, reverse(features, coefficient)).chunk(2)
        return margin_disparity(source.logits, ours, target.logits, theirs, margin=self.margin)
