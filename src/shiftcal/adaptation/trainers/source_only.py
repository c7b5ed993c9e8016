"""Source only: the baseline that never looks at the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Domain
from shiftcal.adaptation.settings import Settings


@final
@dataclass(frozen=True, kw_only=True)
class SourceOnly(Trainer):
    """The cross-entropy on the source, and nothing else; ``trade_off`` multiplies nothing.

    The reference puts the head on the backbone itself. The recipes ``"frozen"`` and ``"digits"``,
    which are ours, have a bottleneck as the others have; learning rates and heads still differ.
    """

    label: ClassVar[str] = "source only"
    adapts: ClassVar[bool] = False
    settings: ClassVar[Settings] = Settings(lr=0.001, bottleneck=0)
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 2_500},
        "visda": {"iterations": 20_000},
        "frozen": {"iterations": 1_000, "lr": 0.003, "bottleneck": 256},
        "digits": {
            "iterations": 1_000,
            "batch_size": 64,
            "lr": 0.03,
            "backbone_lr": 1.0,
            "bottleneck": 256,
        },
    }

    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """Nothing."""
        return source.logits.new_zeros(())
