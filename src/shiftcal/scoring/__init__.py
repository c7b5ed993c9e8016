"""Scoring: a model run over images, corrupted or not, in shards that are never done twice.

:func:`score` gives scores in memory, :func:`score_file` in a file that is resumed;
:func:`score_mixed` gives those of mixed images. These have their work done by an engine, on this
machine (:class:`LocalEngine`) or on a cluster (:class:`RayEngine`).
:func:`score_inputs` runs a model over what is not an image.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftcal.scoring.api import Scored, score, score_file, score_inputs, score_mixed
    from shiftcal.scoring.engines import Engine, LocalEngine, RayEngine
    from shiftcal.scoring.statistics import ScoreStatistics

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "Engine": "engines",
    "LocalEngine": "engines",
    "RayEngine": "engines",
    "ScoreStatistics": "statistics",
    "Scored": "api",
    "score": "api",
    "score_file": "api",
    "score_inputs": "api",
    "score_mixed": "api",
}

__all__ = [
    "Engine",
    "LocalEngine",
    "RayEngine",
    "ScoreStatistics",
    "Scored",
    "score",
    "score_file",
    "score_inputs",
    "score_mixed",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"shiftcal.scoring.{_WHERE[name]}")
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted(__all__)
