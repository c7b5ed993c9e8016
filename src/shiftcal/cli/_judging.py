"""Metrics with their intervals, for the commands that have labels."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shiftcal.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shiftcal._types import Labels, Probs
    from shiftcal.metrics import BinTable

# Draws from a single row are all the same, and would give an interval of no width.
_FEWEST = 2


@dataclass(frozen=True)
class Judge:
    """How predictions are judged: bins, and the bootstrap behind intervals.

    Attributes:
        n_bins: Number of bins of binned metrics.
        binning: ``"size"`` or ``"width"``.
        level: Coverage of intervals.
        n_resamples: Bootstrap draws; 0 for no intervals.
        seed: Of the draws.
    """

    n_bins: int
    binning: str
    level: float
    n_resamples: int
    seed: int

    def check(self) -> None:
        """Refuse what cannot be meant, before files are read.

        Raises:
            InputError: Naming the option.
        """
        from shiftcal._checks import check_choice, check_fraction

        check_choice(self.binning, ("size", "width"), name="--binning")
        check_fraction(self.level, name="--level")
        if self.n_resamples == 1:
            raise InputError(
                "--resamples must be 0 (no intervals) or at least 2; got 1. "
                "1000 gives ends that hardly depend on the seed."
            )

    def value(self, name: str, probs: Probs, labels: Labels) -> float:
        """The metric called ``name``, without an interval."""
        metric, arrays, options = self._call(name, probs, labels)
        return float(metric(*arrays, **options))

    def interval(self, name: str, probs: Probs, labels: Labels) -> dict[str, float | None]:
        """The metric called ``name``: ``value``, ``low`` and ``high``, which may be ``None``."""
        from shiftcal.metrics import bootstrap

        if self.n_resamples == 0 or len(labels) < _FEWEST:
            return {"value": self.value(name, probs, labels), "low": None, "high": None}
        metric, arrays, options = self._call(name, probs, labels)
        interval = bootstrap(
            metric,
            *arrays,
            n_resamples=self.n_resamples,
            level=self.level,
            seed=self.seed,
            **options,
        )
        return {"value": interval.value, "low": interval.low, "high": interval.high}

    def bin_table(self, probs: Probs, labels: Labels) -> BinTable:
        """The table behind ECE."""
        from shiftcal.metrics import bin_table

        return bin_table(*_top1(probs, labels), n_bins=self.n_bins, binning=self.binning)  # type: ignore[arg-type]

    def describe(self, n: int) -> str:
        """The definitions behind the numbers of ``n`` rows, in a sentence or two."""
        kind = "size" if self.binning == "size" else "width"
        text = (
            "Accuracy, confidence and ECE are fractions, not percent; NLL is in nats. "
            f"ECE: {self.n_bins} bins of equal {kind}."
        )
        if self.n_resamples and n < _FEWEST:
            text += " No intervals: one row cannot tell how much rows differ."
        elif self.n_resamples:
            text += (
                f" Intervals: {100 * self.level:g}% bootstrap, {self.n_resamples} draws, "
                f"seed {self.seed}."
            )
        return text

    def _call(
        self, name: str, probs: Probs, labels: Labels
    ) -> tuple[Any, tuple[Any, Any], dict[str, Any]]:
        from shiftcal import metrics
        from shiftcal.metrics.base import facts_of

        metric = metrics.get(name)
        arrays = _top1(probs, labels) if facts_of(metric).reads == "top1" else (probs, labels)
        takes_bins = "n_bins" in inspect.signature(metric).parameters
        return (
            metric,
            arrays,
            {"n_bins": self.n_bins, "binning": self.binning} if takes_bins else {},
        )


def _top1(probs: Probs, labels: Labels) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return probs.max(axis=1), probs.argmax(axis=1) == labels
