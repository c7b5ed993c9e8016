"""Domain adaptation: networks that learn from labelled source and unlabelled target images.

:func:`adapt` trains one, from images to what calibration needs; :func:`names` lists the trainers,
:func:`get` gives their classes. PyTorch is imported when something is trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.adaptation.trainers import Settings, Trainer
from shiftcal.lazy import lazy
from shiftcal.registry import TRAINERS

if TYPE_CHECKING:
    from shiftcal.adaptation.run import Adapted, Frozen, adapt, frozen_features

names = TRAINERS.names
get = TRAINERS.get

__all__ = [
    "Adapted",
    "Frozen",
    "Settings",
    "Trainer",
    "adapt",
    "frozen_features",
    "get",
    "names",
]

__getattr__, __dir__ = lazy(__name__, {"run": "Adapted Frozen adapt frozen_features"})
