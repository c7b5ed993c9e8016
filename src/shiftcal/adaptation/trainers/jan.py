"""JAN: features and predictions together have the same mean in a kernel's space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from shiftcal._checks import check_flag, check_positive
from shiftcal.adaptation.base import Trainer
from shiftcal.adaptation.passes import Domain, together
from shiftcal.adaptation.settings import Settings


@final
@dataclass(frozen=True, kw_only=True)
class JAN(Trainer):
    """Joint adaptation network (Long et al., 2017).

    The transfer loss is the squared maximum mean discrepancy with the product of two kernels: that
    of :class:`DAN` on the bottleneck's features, and a Gaussian one on the probabilities.
    The recipes ``"frozen"`` and ``"digits"`` are ours.

    Attributes:
        linear: Whether it is estimated from neighbouring pairs of the batch; else from all pairs.
        sigma: Standard deviation of the kernel on the probabilities.
    """

    label: ClassVar[str] = "JAN"
    settings: ClassVar[Settings] = Settings()
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "office-home": {"iterations": 10_000},
        "visda": {"iterations": 10_000},
        "frozen": {"iterations": 1_000},
        "digits": {"iterations": 1_000, "batch_size": 64, "lr": 0.03, "backbone_lr": 1.0},
    }

    linear: bool = False
    sigma: float = 0.92

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.linear, name="linear")
        check_positive(self.sigma, name="sigma")

    def bottleneck(self, n_in: int, width: int) -> Any:
        """Linear, batch normalisation, ReLU, dropout of one half."""
        from shiftcal.adaptation.heads import linear_bottleneck

        return linear_bottleneck(n_in, width, dropout=0.5)

    def transfer(self, source: Domain, target: Domain, extra: Any, step: int) -> Any:
        """The discrepancy of features and probabilities together."""
        from shiftcal.adaptation.losses.jmmd import jmmd_of_logits

        both = together(source, target)
        return jmmd_of_logits(*both, linear=self.linear, sigma=self.sigma)
