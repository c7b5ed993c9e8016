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
    from shiftcal.scoring._score import score
    from shiftcal.scoring._score_file import Scored, score_file
    from shiftcal.scoring._score_inputs import score_inputs
    from shiftcal.scoring._score_mixed import score_mixed
    from shiftcal.scoring.engines.base import Engine
    from shiftcal.scoring.engines.local import LocalEngine
    from shiftcal.scoring.engines.ray import RayEngine
    from shiftcal.scoring.statistics.score_statistics import ScoreStatistics

# Public name -> the file it is taken from, when it is first asked for.
_WHERE = {
    "Engine": "engines.base",
    "LocalEngine": "engines.local",
    "RayEngine": "engines.ray",
    "ScoreStatistics": "statistics.score_statistics",
    "Scored": "_score_file",
    "score": "_score",
    "score_file": "_score_file",
    "score_inputs": "_score_inputs",
    "score_mixed": "_score_mixed",
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
