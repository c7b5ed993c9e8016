"""Two choices of one method, applied to the same rows and mixed."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Logits, Probs
from shiftcal.grouping._selection import GroupChoice
from shiftcal.methods import Method
from shiftcal.methods._selection import Selection
from shiftcal.numerics.softmax import softmax

# A probability of 0 has no logarithm; what is below this is as good as nothing.
_TINY = 1e-300


def mixed_temperature(own: Selection, everything: Selection, weight: float) -> float | None:
    """The temperature that a group gets: ``1 / T = w / T_g + (1 − w) / T_all``."""
    if own.temperature is None or everything.temperature is None:
        return None
    if own.temperature == everything.temperature or weight in (0, 1):  # to the last digit
        return own.temperature if weight == 1 else everything.temperature
    return float(1 / (weight / own.temperature + (1 - weight) / everything.temperature))


def calibrated(
    method: Method, choice: GroupChoice | None, everything: Selection, logits: Logits
) -> Probs:
    """Probabilities of the rows of one group.

    Args:
        method: Fitted.
        choice: Of the group; ``None`` if it has none.
        everything: What was chosen for all rows.
        logits: ``(n, k)``, checked.
    """
    if choice is None or choice.weight == 0:
        return _by(method, everything, logits)
    if choice.weight == 1:
        return _by(method, choice.own, logits)
    if choice.temperature is not None:
        return softmax(logits, choice.temperature)
    own, other = (_logs(_by(method, s, logits)) for s in (choice.own, everything))
    return softmax(choice.weight * own + (1 - choice.weight) * other)


def _by(method: Method, selection: Selection, logits: Logits) -> Probs:
    adapted = copy.copy(method)
    adapted.selection_ = selection
    return adapted._apply(logits)


def _logs(probs: Probs) -> NDArray[np.float64]:
    return np.asarray(np.log(np.maximum(probs, _TINY)))
