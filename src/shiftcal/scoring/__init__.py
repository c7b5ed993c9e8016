"""Scoring: a model run over images, corrupted or not, in shards that are never done twice.

:func:`score` gives scores in memory, :func:`score_file` in a file that is resumed;
:func:`score_mixed` gives those of mixed images. These have their work done by an engine, on this
machine (:class:`LocalEngine`) or on a cluster (:class:`RayEngine`).
:func:`score_inputs` runs a model over what is not an image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shiftcal.lazy import lazy

if TYPE_CHECKING:
    from shiftcal.scoring.api import Scored, score, score_file, score_inputs, score_mixed
    from shiftcal.scoring.engines import Engine, LocalEngine, RayEngine
    from shiftcal.scoring.statistics import ScoreStatistics

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "api": "Scored score score_file score_inputs score_mixed",
        "engines": "Engine LocalEngine RayEngine",
        "statistics": "ScoreStatistics",
    },
)
