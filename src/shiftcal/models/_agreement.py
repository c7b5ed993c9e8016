"""How often two models choose the same class."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftcal.errors import InputError
from shiftcal.models._resolve import as_model


def agreement(a: Any, b: Any, images: object) -> float:
    """The part of the images, between 0 and 1, for which both models' largest logit is the same.

    Args:
        a: A model, or what :func:`as_model` makes one of.
        b: Another, such as the same network in half precision or exported to a file.
        images: As for :meth:`Model.logits`.

    Raises:
        InputError: If the models have not the same number of classes.
    """
    one, other = as_model(a).logits(images), as_model(b).logits(images)
    if one.shape[1] != other.shape[1]:
        raise InputError(
            "two models must have the same classes to be compared; got "
            f"{one.shape[1]} and {other.shape[1]} of them."
        )
    return float(np.mean(one.argmax(axis=1) == other.argmax(axis=1)))
