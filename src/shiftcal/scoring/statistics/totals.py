"""Totals over rows, as whole numbers: what rows add, and what follows from the totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels, Logits
from shiftcal.numerics.exact_sums import EXACT_BITS, exact_sum, fixed_square_sum, fixed_sum
from shiftcal.numerics.softmax import p_max
from shiftcal.numerics.temperature.ladder import BETAS, FRACTION_BITS, Likelihood, ladder_sums

# Confidences are summed as whole multiples of 2**-40, so their squares as those of 2**-80.
_CONFIDENCE_BITS = 40
OF_CONFIDENCE = ("rows", "confidence", "confidence_squared")
OF_LABELS = ("correct", "constant", "log_sum", "brier", "regret", "gain")
LADDER = 3 * len(BETAS)


@dataclass(frozen=True)
class Totals:
    """Totals that add up without rounding, in any order.

    Attributes:
        sums: ``rows``; ``confidence`` and ``confidence_squared`` in their units; and with labels
            ``correct`` rows, ``constant`` rows (all logits equal), and the sums of ``log sum
            exp(z - max z)``, of the Brier score, of ``max z - z[label]`` (``regret``) and of
            ``z[label] - mean z`` (``gain``).
        ladder: Sums of moments at the ladder of temperatures; empty without labels.
    """

    sums: Mapping[str, int]
    ladder: tuple[int, ...] = ()

    @property
    def labelled(self) -> bool:
        """Whether labels were counted."""
        return bool(self.ladder)

    def __add__(self, other: Totals) -> Totals:
        sums = {name: self.sums[name] + other.sums[name] for name in self.sums}
        ladder = (a + b for a, b in zip(self.ladder, other.ladder, strict=True))
        return Totals(sums, tuple(ladder))

    @property
    def mean_confidence(self) -> float:
        """Mean of p_max; every row is rounded to 5e-13."""
        return self.sums["confidence"] / (self.sums["rows"] << _CONFIDENCE_BITS)

    @property
    def sd_confidence(self) -> float:
        """Standard deviation of p_max, from whole numbers: nothing cancels."""
        n, total = self.sums["rows"], self.sums["confidence"]
        variance = n * self.sums["confidence_squared"] - total**2
        return float((variance / (n * n << 2 * _CONFIDENCE_BITS)) ** 0.5)

    def mean(self, name: str) -> float:
        """Mean over rows of what was summed with labels."""
        bits = {"correct": 0, "regret": EXACT_BITS, "gain": EXACT_BITS}.get(name, FRACTION_BITS)
        return self.sums[name] / (self.sums["rows"] << bits)

    def likelihood(self) -> Likelihood:
        """The likelihood at every temperature."""
        unit = self.sums["rows"] << FRACTION_BITS
        moments = np.array([total / unit for total in self.ladder]).reshape(3, -1)
        regret = self.mean("regret")
        return Likelihood(moments, regret=regret, at_one=self.mean("log_sum") + regret)


def totals_of(
    logits: Logits, labels: Labels | None
) -> tuple[Totals, NDArray[np.float64], NDArray[np.bool_]]:
    """What a block of rows adds, whatever stands around it.

    Returns:
        The totals, and for each row its confidence and whether it is correct; without labels
        none is.
    """
    confidence = p_max(logits)
    sums = {
        "rows": len(logits),
        "confidence": fixed_sum(confidence, _CONFIDENCE_BITS),
        "confidence_squared": fixed_square_sum(confidence, _CONFIDENCE_BITS),
    }
    if labels is None:
        return Totals(sums), confidence, np.zeros(len(logits), np.bool_)
    correct = logits.argmax(axis=1) == labels
    ladder, log_sums, squares = ladder_sums(logits)
    z = logits.astype(np.float64)
    of_label = z[np.arange(len(z)), labels]
    regret = z.max(axis=1) - of_label
    brier = squares - 2 * np.exp(-regret - log_sums) + 1
    sums |= {
        "correct": int(correct.sum()),
        "constant": int((z.max(axis=1) == z.min(axis=1)).sum()),
        "log_sum": fixed_sum(log_sums, FRACTION_BITS),
        "brier": fixed_sum(brier, FRACTION_BITS),
        "regret": exact_sum(regret),
        "gain": exact_sum(of_label - z.mean(axis=1)),
    }
    return Totals(sums, tuple(ladder)), confidence, correct
