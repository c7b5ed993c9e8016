"""Why a temperature stopped at an end of its range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from shiftcal._types import FitStatus, Labels, Logits, Weights

Data: TypeAlias = tuple[Logits, Labels, Weights | None]

# Logits looked at in one go, so that no copy of all rows is made.
_BLOCK = 1 << 16
ERROR_FREE = (
    "the set is error-free (every label is a largest logit of its row), so sharper is always "
    "better. Calibrate on data the model was not trained on"
)
CHANCE = (
    "the model is no better than chance on this set, so nothing beats a uniform guess. Check that "
    "labels and columns are in the same order"
)
FLAT = "every row of logits is constant, so all temperatures give the same uniform guess"
BELOW = "the fit is still improving there, so the best temperature is lower yet"
ABOVE = "the fit is still improving there, so the best temperature is higher yet"


def at_lower_bound(t_range: tuple[float, float], why: str) -> FitStatus:
    """Status of a fit that stopped at the lower end of ``t_range``."""
    return FitStatus(
        "at-lower-bound",
        f"the temperature stopped at {t_range[0]:g}, the lower end of t_range: {why}.",
    )


def at_upper_bound(t_range: tuple[float, float], why: str) -> FitStatus:
    """Status of a fit that stopped at the upper end of ``t_range``."""
    return FitStatus(
        "at-upper-bound",
        f"the temperature stopped at {t_range[1]:g}, the upper end of t_range: {why}.",
    )


def is_constant(data: Data) -> bool:
    """Whether every row that has weight holds one number only."""
    return not any((w * (z.max(axis=1) > z.min(axis=1))).any() for z, _, w in _blocks(data))


def is_error_free(data: Data) -> bool:
    """Whether every label of a row that has weight is a largest logit of it."""
    return not any((w * (_at(z, y) < z.max(axis=1))).any() for z, y, w in _blocks(data))


def beats_chance(data: Data) -> bool:
    """Whether the mean of ``z[label] - mean z`` is positive: then some T beats a uniform guess."""
    gains = [w @ (_at(z, y) - z.mean(axis=1, dtype=np.float64)) for z, y, w in _blocks(data)]
    return sum(gains) > 0


def _at(logits: Logits, labels: Labels) -> Logits:
    return logits[np.arange(len(logits)), labels]


def _blocks(data: Data) -> Iterator[tuple[Logits, Labels, Weights]]:
    logits, labels, weights = data
    rows = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), rows):
        part = slice(start, start + rows)
        z = logits[part]
        yield z, labels[part], np.ones(len(z)) if weights is None else weights[part]
