"""A training whose numbers are finite no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shiftcal.adaptation.settings import Settings
from shiftcal.errors import FitError


def check_losses(
    window: Sequence[Sequence[float]], first: int, settings: Settings, kept: str
) -> None:
    """Refuse losses that are not finite.

    Args:
        window: Classification, transfer and total of iterations in a row.
        first: Number of the first of them, from 0.
        settings: Of the training.
        kept: Which checkpoint there is, in words.

    Raises:
        FitError: If one is not, which names the first.
    """
    for step, losses in enumerate(window, first):
        if not all(map(math.isfinite, losses)):
            classification, transfer, total = losses
            raise FitError(
                f"the training diverged: in step {step + 1:,} of {settings.iterations:,} the loss "
                f"is {total:.4g} (classification {classification:.4g}, transfer {transfer:.4g}), "
                f"at the learning rate {settings.lr_at(step):.3g}. {kept} {_ADVICE}"
            )


def check_weights(name: str | None, step: int, settings: Settings, kept: str) -> None:
    """Refuse weights that are not finite.

    Args:
        name: Of the first tensor that is not, if there is one.
        step: Iterations done.
        settings: Of the training.
        kept: Which checkpoint there is, in words.

    Raises:
        FitError: If there is one.
    """
    if name is not None:
        raise FitError(
            f"the training diverged: after step {step:,} of {settings.iterations:,} {name} holds "
            f"NaN or infinite numbers, at the learning rate {settings.lr_at(step - 1):.3g}. "
            f"{kept} {_ADVICE}"
        )


_ADVICE = "Train into another folder with a smaller lr or trade_off."
