"""A trial run, by which a backbone is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.backbones.base import side_of
from shiftcal.errors import InputError, ShiftcalError
from shiftcal.models.preprocessing import Preprocessing

# Where nothing says how large images are: those of CIFAR and of ImageNet.
_SIDES = (32, 224)


def tried(module: Any, preprocessing: Preprocessing) -> Any:
    """What a module gives for a black image, in evaluation mode; it is left in the mode it was in.

    The image is as large as the preprocessing says, or else as the module takes.

    Raises:
        InputError: If the module fails.
    """
    said = side_of(preprocessing)
    sides = _SIDES if said is None else (said,)
    first = next(iter(module.parameters()), torch.zeros(()))
    why = ""
    for side in sides:
        image = torch.zeros((1, preprocessing.channels, side, side), device=first.device)
        try:
            with _evaluated(module):
                return module(image)
        except ShiftcalError:
            raise
        except Exception as error:  # a module raises what it likes
            why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    told = " and of ".join(f"{side} x {side}" for side in sides)
    raise InputError(
        f"the backbone failed on an image of {told} pixels: {why}. Say the size that it takes in "
        "its preprocessing: resize and crop."
    )


def leave_out_unused(module: Any, features: Any) -> None:
    """Train no parameter that has no part in the features, such as those of layers behind them.

    They would have no gradient, for which processes that train together wait.

    Args:
        module: The backbone.
        features: What it gave, with the graph that leads there.
    """
    wanted = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not wanted:
        return
    slopes = torch.autograd.grad(features.sum(), wanted, allow_unused=True)
    for parameter, slope in zip(wanted, slopes, strict=True):
        parameter.requires_grad_(slope is not None)


@contextmanager
def _evaluated(module: Any) -> Iterator[None]:
    """In evaluation mode meanwhile, so that no statistics of batches change."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
