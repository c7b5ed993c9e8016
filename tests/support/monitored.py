"""A bank of two corruptions and streams of its kind, for tests of monitors."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
from ladder_data import draw

from shiftcal import SurrogateBank, SurrogateSet, methods
from shiftcal.monitoring import Monitor, Sliding

K = 6
CLEAN = 1.3
# Few and quickly simulated: limits are asked about elsewhere.
OFTEN = 10.0


@cache
def bank(n: int = 1500) -> SurrogateBank:
    """The clean set and three steps of fading, and of fading with larger logits."""
    sets = [SurrogateSet(*draw(n, CLEAN, seed=1), "clean", severity=0)]
    for name, scale in (("fading", 1.0), ("glare", 1.15)):
        for severity, strength in enumerate((1.0, 0.7, 0.45), start=1):
            logits, labels = draw(n, strength, seed=10 + severity)
            title = f"{name} {severity}"
            sets.append(SurrogateSet(scale * logits, labels, title, name, severity))
    return SurrogateBank(sets)


@cache
def method(name: str):
    """A fitted method; adapting it is all that may be done to it."""
    return methods.get(name)().fit(bank())


def rows(n: int, strength: float = CLEAN, *, seed: int) -> np.ndarray:
    """Logits of a stream."""
    return draw(n, strength, seed=seed)[0]


@cache
def _fitted(method: str, window: tuple[int, int]) -> Monitor:
    size, blocks = window
    return Monitor(
        method,
        estimator="rehearsed" if method == "rehearsal" else None,
        window=Sliding(rows=size, blocks=blocks),
        false_alarms=OFTEN,
    ).fit(bank())


def monitor(method: str = "rehearsal", *, rows: int = 1000, blocks: int = 10) -> Monitor:
    """A fitted monitor of its own, fresh."""
    made = copy.deepcopy(_fitted(method, (rows, blocks)))
    made.reset()
    return made


def fed(watch: Monitor, logits: np.ndarray, *cuts: int, **options):
    """Updates for the rows cut at these places."""
    return [watch.feed(part, **options) for part in np.split(logits, cuts)]
