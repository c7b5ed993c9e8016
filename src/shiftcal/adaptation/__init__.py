"""Domain adaptation: networks that learn from labelled source and unlabelled target images.

:func:`adapt` trains one, from images to what calibration needs; :func:`names` lists the trainers,
:func:`get` gives their classes. PyTorch is imported when something is trained.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shiftcal._registry import Registry
from shiftcal.adaptation.base import Trainer

if TYPE_CHECKING:
    from shiftcal.adaptation.adapted import Adapted
    from shiftcal.adaptation.diverged import last_checkpoint
    from shiftcal.adaptation.frozen import Frozen, frozen_features
    from shiftcal.adaptation.run import adapt
    from shiftcal.adaptation.settings import Settings

_registry: Registry[Trainer] = Registry("shiftcal.adaptation.trainers", "trainer", Trainer)
names = _registry.names
get = _registry.get

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "Adapted": "adapted",
    "Frozen": "frozen",
    "Settings": "settings",
    "adapt": "run",
    "frozen_features": "frozen",
    "last_checkpoint": "diverged",
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
