"""DAN: the features of both domains have the same mean in a kernel's space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal._checks import check_flag
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Domain
from shiftcal.adaptation.settings import Settings


@final
@dataclass(frozen=True, kw_only=True)
class DAN(Trainer):
    """Deep adaptation network (Long et al., 2015).

    The transfer loss is the squared maximum mean discrepancy of the bottleneck's features, with
    the sum of five Gaussian kernels whose variances are 1/8 to 2 times the mean squared distance.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        linear: Whether it is estimated from neighbouring pairs of the batch; else from all pairs.
    """

    label: ClassVar[str] = "DAN"
    joint: ClassVar[bool] = False
    settings: ClassVar[Settings] = Settings()
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000},
        "frozen": {"iterations": 1_000},
        "digits": {"iterations": 1_000, "batch_size": 64, "lr": 0.03, "backbone_lr": 1.0},
    }

    linear: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.linear, name="linear")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, ReLU, dropout of one half."""
        from shiftcal.adaptation.heads import linear_bottleneck

        return linear_bottleneck(n_in, width, norm=False, dropout=0.5)

    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """The discrepancy of the features."""
        from shiftcal.adaptation.losses.mmd import mk_mmd

        return mk_mmd(source.features, target.features, linear=self.linear)
