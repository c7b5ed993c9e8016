"""Accuracy without labels: fitted on a surrogate bank, estimated for an unlabelled target.

One file is one estimator, found by its file name: ``estimates.names()`` lists them,
``estimates.get("atc")`` and ``estimates.ATC`` give the class.
"""

from typing import Any

from shiftcal._registry import Registry
from shiftcal.estimates._estimate import AccuracyEstimate, LeftOut
from shiftcal.estimates.base import AccuracyEstimator

_registry: Registry[AccuracyEstimator] = Registry(
    "shiftcal.estimates", "accuracy estimator", AccuracyEstimator
)
names = _registry.names
get = _registry.get

__all__ = ["AccuracyEstimate", "AccuracyEstimator", "LeftOut", "get", "names"]


def __getattr__(name: str) -> Any:
    by_class = {file.replace("-", ""): file for file in names()}
    if name.lower() in by_class and (found := get(by_class[name.lower()])).__name__ == name:
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(get(name).__name__ for name in names())]
