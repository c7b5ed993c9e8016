"""Engines: this machine, or a cluster. One file is one engine, found by its name."""

from __future__ import annotations

from shiftcal.scoring.engines._choose import REGISTRY, engine_of
from shiftcal.scoring.engines.base import Engine

names = REGISTRY.names
get = REGISTRY.get

__all__ = ["Engine", "engine_of", "get", "names"]
