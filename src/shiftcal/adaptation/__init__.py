"""Domain adaptation: networks that learn from labelled source and unlabelled target images.

:func:`adapt` trains one, from images to what calibration needs; :func:`names` lists the trainers,
:func:`get` gives their classes. PyTorch is imported when something is trained.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shiftcal.adaptation.trainer import Trainer
from shiftcal.registry import TRAINERS

if TYPE_CHECKING:
    from shiftcal.adaptation.features import Frozen, frozen_features
    from shiftcal.adaptation.run import Adapted, adapt, last_checkpoint
    from shiftcal.adaptation.trainer import Settings

names = TRAINERS.names
get = TRAINERS.get

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "Adapted": "run",
    "Frozen": "features",
    "Settings": "trainer",
    "adapt": "run",
    "frozen_features": "features",
    "last_checkpoint": "run",
}

__all__ = [
    "Adapted",
    "Frozen",
    "Settings",
    "Trainer",
    "adapt",
    "frozen_features",
    "get",
    "last_checkpoint",
    "names",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"shiftcal.adaptation.{_WHERE[name]}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted(__all__)
