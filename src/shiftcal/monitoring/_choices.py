"""What a method chooses for a window, at the cost of microseconds: a temperature or a map.

The whole :class:`Selection`, with its interval and flags, takes a thousand times as long and is
worked out only when somebody asks for it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.maps import Map
from shiftcal.methods import Method
from shiftcal.methods._ladder import nearest_first
from shiftcal.methods.base import temperature_of
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.methods.sac import SAC
from shiftcal.rehearsals import FixedSize, Grouped
from shiftcal.surrogates import SetSummary

# Ratios are no larger: a window without any spread would be infinitely far.
_MOST = 1e6


class Choice(NamedTuple):
    """What is used from a look on.

    Attributes:
        temperature: What logits are divided by; ``None`` if the map is no temperature.
        which: Which map of several; ``None`` if there is one.
        outside: How far the window is from all that the bank has, over its reach.
    """

    temperature: float | None
    which: int | None = None
    outside: float = 0.0


class Seen(NamedTuple):
    """A window in sums.

    Attributes:
        means: ``(2 k + 3,)`` of p_max, entropy, ``p``, ``p²`` and p_max².
        n: Rows of an unweighted sample that is as noisy.
        groups: Blocks.
        whole: Gives the sums of every block.
    """

    means: NDArray[np.float64]
    n: int
    groups: int
    whole: Callable[[], Grouped]


class Chooser(ABC):
    """The choices of one fitted method.

    Args:
        method: Fitted.
        ladder: Every set of its bank in numbers.
    """

    def __init__(self, method: Method, ladder: Sequence[SetSummary]) -> None:
        self._method = method
        self._lowest = min(ladder, key=lambda s: s.mean_confidence)
        self._highest = max(ladder, key=lambda s: s.mean_confidence)

    @abstractmethod
    def start(self) -> Choice:
        """What is used before anything was seen: what the clean set gets."""

    @abstractmethod
    def choose(self, seen: Seen) -> Choice:
        """What is used after a window."""

    def map_of(self, which: int | None) -> Map:
        """The map in use, where it is no temperature."""
        method: Any = self._method
        return method.map_ if which is None else method.maps_[which]

    def beyond(self, seen: Seen) -> float:
        """How far mean confidence lies outside that of the sets, over three standard errors."""
        mean = float(seen.means[0])
        sd = math.sqrt(max(float(seen.means[-1]) - mean**2, 0.0))
        return max(
            _excess(self._lowest.mean_confidence - mean, self._lowest, sd, seen.n),
            _excess(mean - self._highest.mean_confidence, self._highest, sd, seen.n),
        )


class Fixed(Chooser):
    """Of methods that look at no target: always the same."""

    def start(self) -> Choice:
        """What the method has."""
        return Choice(self._temperature())

    def choose(self, seen: Seen) -> Choice:
        """The same."""
        return Choice(self._temperature(), outside=self.beyond(seen))

    def _temperature(self) -> float | None:
        map_ = getattr(self._method, "map_", None)
        return 1.0 if map_ is None else temperature_of(map_)


class BySums(Chooser):
    """Of any method that adapts to sums."""

    def start(self) -> Choice:
        """What it chooses for a target as sure as the surest set."""
        k = self._method.n_classes_
        sums = np.full((1, 2 + 2 * k), self._highest.mean_confidence)
        return Choice(self._method._adapt_moments(Grouped(sums, np.ones(1), 0.0)).temperature)

    def choose(self, seen: Seen) -> Choice:
        """The temperature of the selection."""
        chosen = self._method._adapt_moments(seen.whole())
        return Choice(chosen.temperature, outside=self.beyond(seen))


class ByMean(Chooser):
    """Of SAC: the set nearest in mean confidence."""

    def __init__(self, method: SAC, ladder: Sequence[SetSummary]) -> None:
        super().__init__(method, ladder)
        # In the order in which ties are decided: the first of the nearest is taken.
        self._order = nearest_first(ladder, [0.0] * len(ladder))
        self._means = np.array([ladder[j].mean_confidence for j in self._order])
        self._temperatures = [temperature_of(map_) for map_ in method.maps_]

    def start(self) -> Choice:
        """The clean set."""
        return Choice(self._temperatures[0], 0)

    def choose(self, seen: Seen) -> Choice:
        """The map of the nearest set."""
        nearest = self._order[int(np.abs(self._means - seen.means[0]).argmin())]
        return Choice(self._temperatures[nearest], nearest, self.beyond(seen))


class ByRehearsal(Chooser):
    """Of Rehearsal: the temperature that was right for outputs like these."""

    _method: Rehearsal

    def __init__(self, method: Rehearsal, ladder: Sequence[SetSummary]) -> None:
        super().__init__(method, ladder)
        self._ready: dict[tuple[int, int], FixedSize] = {}

    def start(self) -> Choice:
        """The temperature of the clean set."""
        return Choice(self._method.temperatures_[0])

    def choose(self, seen: Seen) -> Choice:
        """The temperature, and the distance from the rehearsals over their reach."""
        memory = self._method.memory_
        size = (seen.n, seen.groups)
        if size not in self._ready:
            # As many as the sizes of a window that fills; then one.
            self._ready[size] = FixedSize(
                memory, seen.n, groups=seen.groups, seed=self._method.seed_
            )
        answer = self._ready[size].answer(seen.means[:-1], seen.whole)
        decision = self._method.decide(answer, float(seen.means[0]))
        outside = 0.0 if decision.clean else min(float(answer.distance) / memory.reach, _MOST)
        return Choice(math.exp(decision.log_t), outside=outside)


def chooser_of(method: Method, ladder: Sequence[SetSummary]) -> Chooser:
    """The fastest chooser there is for a fitted method."""
    if isinstance(method, Rehearsal):
        return ByRehearsal(method, ladder)
    if isinstance(method, SAC):
        return ByMean(method, ladder)
    return BySums(method, ladder) if method.uses_target else Fixed(method, ladder)


def _excess(excess: float, end: SetSummary, sd: float, n: int) -> float:
    if excess <= 0:
        return 0.0
    noise = math.hypot(max(sd, end.sd_confidence) / math.sqrt(n), end.standard_error)
    return min(excess / (3 * noise), _MOST) if noise > 0 else _MOST
