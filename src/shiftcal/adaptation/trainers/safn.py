"""SAFN: the features of both domains grow, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal._checks import check_not_negative
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Domain, together
from shiftcal.adaptation.settings import Settings


@final
@dataclass(frozen=True, kw_only=True)
class SAFN(Trainer):
    """Stepwise adaptive feature norm (Xu et al., 2019).

    The transfer loss is the mean over a domain of ``(|f| - (r + delta))²``, where ``r`` is the
    value of ``|f|`` without its gradient, added up over both domains: every feature vector is to be
    ``delta`` longer than it is. The learning rate stays and is the backbone's too, which has no
    momentum. The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        delta: How much longer.
    """

    label: ClassVar[str] = "SAFN"
    joint: ClassVar[bool] = False
    transform: ClassVar[str] = "random-crop"
    settings: ClassVar[Settings] = Settings(
        lr=0.001,
        lr_gamma=0.0,
        backbone_momentum=0.0,
        nesterov=False,
        backbone_lr=1.0,
        bottleneck=1000,
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000, "batch_size": 36, "delta": 0.3},
        "frozen": {"iterations": 1_000, "lr": 0.003, "bottleneck": 256},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "backbone_momentum": 0.9,
            "bottleneck": 256,
            "delta": 0.3,
        },
    }

    trade_off: float = 0.05
    delta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self.delta, name="delta")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half that keeps the norm."""
        from shiftcal.adaptation.heads import norm_preserving_bottleneck

        return norm_preserving_bottleneck(n_in, width, dropout=0.5)

    def head(self, width: int, n_classes: int) -> Any:
        """One linear layer."""
        from shiftcal.adaptation.heads import draw_layers, linear_head

        made = linear_head(width, n_classes)
        draw_layers(made, deviation=0.01, bias_deviation=0.01)
        return made

    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """How far the norms are from what they are to be, in both domains."""
        from shiftcal.adaptation.losses.norms import stepwise_norm

        return stepwise_norm(together(source, target).features, domains=2, delta=self.delta)
