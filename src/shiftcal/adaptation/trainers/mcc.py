"""MCC: predictions on the target confuse no class with another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal._checks import check_positive
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Domain
from shiftcal.adaptation.settings import Settings


@final
@dataclass(frozen=True, kw_only=True)
class MCC(Trainer):
    """Minimum class confusion (Jin et al., 2020).

    With ``P`` the target's probabilities at a temperature and ``w`` weights that favour sure
    predictions, the class confusion is ``Pᵀ diag(w) P`` with rows that sum to one; the transfer
    loss is the mean over classes of what lies off its diagonal.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        temperature: What logits are divided by.
    """

    label: ClassVar[str] = "MCC"
    settings: ClassVar[Settings] = Settings(
        iterations=20_000, batch_size=36, lr=0.005, lr_gamma=1e-3, weight_decay=1e-3
    )
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 30_000, "bottleneck": 2048, "temperature": 2.5},
        "visda": {"iterations": 30_000, "lr": 0.002, "temperature": 3.0},
        "frozen": {"iterations": 1_000, "batch_size": 32},
        "digits": {"iterations": 1_000, "batch_size": 64, "lr": 0.03, "backbone_lr": 1.0},
    }

    temperature: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.temperature, name="temperature")

    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """The target's class confusion."""
        from shiftcal.adaptation.losses.confusion import class_confusion

        return class_confusion(target.logits, self.temperature)
