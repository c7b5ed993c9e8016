"""PseudoCal: the temperature of mixed target images that the model's predictions label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, final

import numpy as np

from shiftcal.maps import Temperature
from shiftcal.methods.method import FEW_ROWS, Method, Selection, fit_map
from shiftcal.numerics.softmax import p_max
from shiftcal.persistence import POSITIVE
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import FitStatus, Flag, Floats, Labels, Logits


@final
class PseudoCal(Method):
    """The T of least NLL on mixed target images, labelled by the model itself.

    Two target images that are predicted to be of different classes are mixed, ``x = λ a +
    (1 - λ) b`` with ``λ = 0.65``, and labelled with the prediction for ``a``: ``T = argmin
    NLL(mixed; T)`` (Hu et al., 2024). Mixing is taken to make errors about as often, and as
    confidently, as the model makes them on the target. No label of the target is needed, and of
    the source only what the fallback is made of.

    Needs the model run over mixed images: ``mixed=`` in ``adapt``, as
    :func:`shiftcal.scoring.score_mixed` gives them. Where no T fits those, because the model is
    right on every mixture or on none, T is that of the clean calibration set, with a flag.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        clean_temperature_: T of the clean calibration set.
    """

    name: ClassVar[str] = "pseudocal"
    uses_target: ClassVar[bool] = True
    uses_mixed: ClassVar[bool] = True

    ranges: ClassVar = {"clean_temperature_": POSITIVE}

    clean_temperature_: float

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        clean = bank.clean
        scaling = fit_map("temperature", clean.logits, clean.labels, where=clean.name)
        self.clean_temperature_ = scaling.temperature_

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        """The clean temperature, for mixtures that tell none."""
        return Selection(
            self.name,
            temperature=self.clean_temperature_,
            n_target=len(logits),
            mean_confidence=float(p_max(logits).mean()),
        )

    def _adapt_mixed(self, logits: Logits, mixed: Logits, labels: Labels) -> Selection:
        scaling = Temperature().fit_checked(mixed, labels, None)
        made = self._adapt(logits, None)
        if scaling.status_.converged:
            made = replace(made, temperature=scaling.temperature_)
        return replace(
            made,
            details={
                "mixed_rows": float(len(mixed)),
                "mixed_accuracy": float(np.mean(mixed.argmax(axis=1) == labels)),
                "clean_temperature": self.clean_temperature_,
            },
            flags=tuple(_flags(len(mixed), scaling.status_)),
        )


def _flags(rows: int, status: FitStatus) -> Iterator[Flag]:
    if rows < FEW_ROWS:
        yield Flag(
            "few-rows",
            f"{rows} mixed images were looked at: the temperature depends on which. Take "
            f"{FEW_ROWS} or more.",
        )
    if not status.converged:
        yield Flag(
            "clean-fallback",
            f"the mixed images tell no temperature, and that of the clean calibration set is "
            f"used: {status.message}",
        )
