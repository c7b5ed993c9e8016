"""Which strength of a corruption leaves a model a given accuracy, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable

# Strengths nearer to one another than this part of the range are not told apart.
_FINEST = 1e-3


class StrengthSearch:
    """Accuracies by strength, measured once each.

    Accuracy is taken to fall from the weak end to the strong one; where it rises on the way, one of
    the strengths that have the accuracy wanted is found.

    Args:
        measure: The accuracy at a strength.
        ends: The weakest setting and the strongest, in this order, whichever is the larger number.
        whole: Whether strengths are whole numbers.
        clean: Accuracy before anything is done, which the weak end is taken to leave.
    """

    def __init__(
        self,
        measure: Callable[[float], float],
        *,
        ends: tuple[float, float],
        whole: bool,
        clean: float,
    ) -> None:
        self.clean = clean
        self._measure = measure
        self._weak, self._strong = ends
        self._whole = whole
        # Settings that reach over decades, and not to zero, are halved in their logarithm.
        self._decades = min(ends) > 0
        self._known: dict[float, float] = {}

    def strongest(self) -> tuple[float, float]:
        """The strongest setting with its accuracy."""
        return self._strong, self._at(self._strong)

    def nearest(self, wanted: float, close: float) -> tuple[float, float]:
        """The strength whose accuracy is nearest to the one wanted, and that accuracy.

        Args:
            wanted: At most :attr:`clean`.
            close: So near that no further strength is tried.
        """
        self.strongest()
        while True:
            best = min(self._known, key=lambda strength: abs(self._known[strength] - wanted))
            middle = self._middle(wanted)
            if abs(self._known[best] - wanted) <= close or middle is None:
                return best, self._known[best]
            self._at(middle)

    def tried(self) -> tuple[tuple[float, float], ...]:
        """Every strength that was measured with its accuracy, from weak to strong."""
        return tuple(sorted(self._known.items(), reverse=self._weak > self._strong))

    def _at(self, strength: float) -> float:
        if strength not in self._known:
            self._known[strength] = self._measure(strength)
        return self._known[strength]

    def _middle(self, wanted: float) -> float | None:
        """Between the strengths where accuracy crosses; ``None`` if nothing new is there."""
        points = [(self._weak, self.clean), *self.tried()]
        below = [
            place for place, (_, accuracy) in enumerate(points) if accuracy <= wanted and place
        ]
        if not below:
            return None
        weaker, stronger = (self._place(points[below[0] - back][0]) for back in (1, 0))
        if abs(stronger - weaker) < _FINEST:
            return None
        middle = self._strength((weaker + stronger) / 2)
        return None if middle in self._known or middle == self._weak else middle

    def _place(self, strength: float) -> float:
        """Where a strength is between the weak end, 0, and the strong one, 1."""
        if self._decades:
            return math.log(strength / self._weak) / math.log(self._strong / self._weak)
        return (strength - self._weak) / (self._strong - self._weak)

    def _strength(self, place: float) -> float:
        if self._decades:
            strength = self._weak * (self._strong / self._weak) ** place
        else:
            strength = self._weak + place * (self._strong - self._weak)
        return float(round(strength)) if self._whole else strength
