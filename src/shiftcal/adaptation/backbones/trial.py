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


def trial_images(module: Any, preprocessing: Preprocessing) -> Any:
    """Two black images, as large as the preprocessing says or else as the module takes.

    Raises:
        InputError: If the module fails on them.
    """
    said = side_of(preprocessing)
    first = next(iter(module.parameters()), torch.zeros(()))
    failures = []
    for side in _SIDES if said is None else (said,):
        shape = (2, preprocessing.channels, side, side)
        images = torch.zeros(shape, device=first.device)
        try:
            with as_evaluated(module), torch.no_grad():
                module(images)
        except ShiftcalError:
            raise
        except Exception as error:  # a module raises what it likes
            told = str(error).strip().partition("\n")[0]
            failures.append(f"{type(error).__name__}: {told}")
        else:
            return images
    sides = " and of ".join(f"{side} x {side}" for side in (_SIDES if said is None else (said,)))
    raise InputError(
        f"the backbone failed on images of {sides} pixels: {failures[-1]}. Say the size that it "
        "takes in its preprocessing: resize and crop."
    )


def count_features(module: Any, images: Any) -> int:
    """How many features a module gives an image."""
    with as_evaluated(module), torch.no_grad():
        return int(module(images).shape[1])


def leave_out_unused(module: Any, images: Any) -> None:
    """Train no parameter that has no part in the features, such as those of layers behind them.

    They would have no gradient, for which processes that train together wait.
    """
    wanted = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not wanted:
        return
    with as_evaluated(module), torch.enable_grad():
        total = module(images).sum()
        slopes = torch.autograd.grad(total, wanted, allow_unused=True)
    for parameter, slope in zip(wanted, slopes, strict=True):
        parameter.requires_grad_(slope is not None)


@contextmanager
def as_evaluated(module: Any) -> Iterator[None]:
    """In evaluation mode meanwhile, so that no statistics of batches change."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
