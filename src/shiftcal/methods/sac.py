"""Surrogate adaptive calibration: the map of the surrogate set that the target resembles."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count
from shiftcal.errors import FitWarning
from shiftcal.maps import Map
from shiftcal.methods.method import (
    Method,
    Selection,
    few_rows,
    fit_maps,
    nearest_first,
    temperature_of,
    warn_of_one_set,
)
from shiftcal.numerics.samples import (
    atc_threshold,
    ks_distance,
    share_at_or_above,
    wasserstein_distance,
)
from shiftcal.numerics.softmax import entropy, p_max
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Flag, Floats, Logits, Probs

if TYPE_CHECKING:
    from shiftcal.methods.rehearsal import Grouped
    from shiftcal.scoring.statistics import ScoreStatistics

DISTANCES = ("mean", "ks", "wasserstein", "atc", "atc-entropy")


# What is compared with the threshold, for the distances that have one.
_SCORES = {"atc": p_max, "atc-entropy": lambda logits: -entropy(logits)}


@final
class SAC(Method):
    """One map per surrogate set; the target gets that of the set nearest in confidence.

    With ``μ_j`` the mean raw p_max of set ``j`` and ``μ`` that of the target,
    ``i = argmin_j |μ − μ_j|`` and the output is map ``i`` of the logits. Ties go to the least
    corrupted set. One choice per target, never per row. With a bank of one set it is TS, and
    ``fit`` warns of it.

    Args:
        map: Name of the calibration map, or an unfitted one with its settings.
        distance: Between the raw p_max of target and set: ``"mean"`` (``|μ − μ_j|``), ``"ks"``
            (Kolmogorov-Smirnov) or ``"wasserstein"``. Or between the target's estimated accuracy
            and the accuracy of the set: ``"atc"`` or ``"atc-entropy"``. The estimate is the share
            of target rows whose raw p_max (or negative entropy) is above a threshold, chosen so
            that the same estimate is correct on the clean set. (Garg et al. 2022)
        peek: Use only this many random target rows; ``None``: all.
        seed: Seed of that draw.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        maps_: The fitted map of every set.
        ladder_: A summary of every set.
        distance_: The distance it was fitted for.
        samples_: Sorted raw p_max of every set, if the distance needs them.
        threshold_: The threshold of ``"atc"``, if the distance needs one.
    """

    name: ClassVar[str] = "sac"
    uses_target: ClassVar[bool] = True
    uses_bank: ClassVar[bool] = True

    maps_: tuple[Map, ...]
    ladder_: tuple[SetSummary, ...]
    distance_: str
    samples_: tuple[NDArray[np.float64], ...] | None
    threshold_: float | None

    def __init__(
        self,
        *,
        map: str | Map = "temperature",
        distance: str = "mean",
        peek: int | None = None,
        seed: int = 0,
        input: str = "logits",
    ) -> None:
        self.map = map
        self.distance = distance
        self.peek = peek
        self.seed = seed
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        check_choice(self.distance, DISTANCES, name="distance")
        if self.peek is not None:
            check_count(self.peek, name="peek")
        check_count(self.seed, name="seed", least=0)
        self.distance_ = self.distance
        self.ladder_ = bank.summaries()
        for flag in not_monotone(self.ladder_):
            # 1 here, 2 and 3 Method.fit, 4 the caller's line
            warnings.warn(flag.message, FitWarning, stacklevel=4)
        self.maps_ = fit_maps(self.map, bank)
        warn_of_one_set(self, bank, self.maps_[0])
        self.samples_ = self.threshold_ = None
        if self.distance_ in ("ks", "wasserstein"):
            self.samples_ = tuple(np.sort(s.confidence()) for s in bank)
        if self.distance_ in _SCORES:
            clean = bank.clean
            n_wrong = int(np.count_nonzero(clean.logits.argmax(axis=1) != clean.labels))
            self.threshold_ = atc_threshold(_SCORES[self.distance_](clean.logits), n_wrong)

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        rows = logits
        if self.peek is not None and self.peek < len(logits):
            rng = np.random.default_rng(self.seed)
            rows = logits[rng.choice(len(logits), self.peek, replace=False)]
        confidence = np.sort(p_max(rows))
        mean, sd = float(confidence.mean()), float(confidence.std())
        if self.threshold_ is not None:
            estimated = share_at_or_above(_SCORES[self.distance_](rows), self.threshold_)
            distances = [abs(estimated - s.accuracy) for s in self.ladder_]
            return self._select(TargetSummary(len(rows), mean, sd, estimated), distances)
        if self.samples_ is None:
            distances = [abs(mean - s.mean_confidence) for s in self.ladder_]
        else:
            measure = ks_distance if self.distance_ == "ks" else wasserstein_distance
            distances = [measure(confidence, sample) for sample in self.samples_]
        return self._select(TargetSummary(len(rows), mean, sd), distances)

    def adapt_statistics(self, statistics: ScoreStatistics) -> Selection:
        """Adapt to the statistics of a target instead of its rows.

        The choice is that of :meth:`~Method.adapt` with all rows, if no two sets are equally near
        to 1e-12. Only the distance ``"mean"`` is known from statistics.

        Args:
            statistics: Of the target, with labels or without.

        Raises:
            InputError: If they have other classes, or the distance is another.
        """
        return self.adapt_moments(statistics)

    def needs_rows(self) -> str | None:
        """Only the distance ``"mean"`` is known from sums, and only that of all rows."""
        if self.distance != "mean":
            return f'distance="{self.distance}" compares rows; distance="mean" needs sums only'
        if self.peek is not None:
            return f"peek={self.peek} draws rows; peek=None needs sums only"
        return None

    def _adapt_moments(self, target: Grouped | ScoreStatistics) -> Selection:
        mean = target.mean_confidence
        summary = TargetSummary(target.n, mean, target.sd_confidence)
        return self._select(summary, [abs(mean - s.mean_confidence) for s in self.ladder_])

    def _select(self, target: TargetSummary, distances: list[float]) -> Selection:
        order = nearest_first(self.ladder_, distances)
        chosen = order[0]
        summary, estimated = self.ladder_[chosen], target.estimated_accuracy
        details = {} if estimated is None else {"estimated_accuracy": estimated}
        return Selection(
            self.name,
            temperature=temperature_of(self.maps_[chosen]),
            n_target=target.n,
            mean_confidence=target.mean_confidence,
            index=chosen,
            n_sets=len(self.ladder_),
            set_name=summary.name,
            corruption=summary.corruption,
            severity=summary.severity,
            distance=self.distance_,
            distances=tuple(distances),
            margin=distances[order[1]] - distances[chosen] if len(order) > 1 else None,
            details=details,
            flags=tuple(self._flags(target, distances, order)),
        )

    def _apply(self, logits: Logits) -> Probs:
        assert self.selection_ is not None
        assert self.selection_.index is not None
        return self.maps_[self.selection_.index].apply_checked(logits)

    def _flags(
        self, target: TargetSummary, distances: Sequence[float], order: Sequence[int]
    ) -> Iterator[Flag]:
        """Every flag that holds, in the order rows, range, ladder, choice, map."""
        yield from few_rows(target.n)
        yield from _outside_range(self.ladder_, target)
        yield from not_monotone(self.ladder_)
        chosen, *others = order
        a = self.ladder_[chosen]
        for other in others:
            b, margin = self.ladder_[other], distances[other] - distances[chosen]
            if _in_doubt(target, a, b, distance=self.distance_, margin=margin):
                yield Flag(
                    "indistinguishable",
                    f"sets {chosen + 1} ({a.name}) and {other + 1} ({b.name}) cannot be told apart "
                    f"by these {target.n:,} rows: distances {distances[chosen]:.4f} and "
                    f"{distances[other]:.4f} differ by no more than sampling noise.",
                )
                break
        status = self.maps_[chosen].status_
        if not status.converged:
            yield Flag("map-not-converged", f"the chosen set's map: {status.message}")


# Flags of a choice. All ask whether a difference is larger than sampling noise explains: three
# standard errors for being outside the range, two for telling sets apart.


@dataclass(frozen=True)
class TargetSummary:
    """Raw p_max of a target in numbers, and its accuracy where that was estimated."""

    n: int
    mean_confidence: float
    sd_confidence: float
    estimated_accuracy: float | None = None

    def standard_error(self, *sets: SetSummary) -> float:
        """Standard error of the mean, if the target varies no less than the sets it may be from.

        A few rows that happen to be alike say nothing about how much the target varies.
        """
        spread = max(self.sd_confidence, *(s.sd_confidence for s in sets))
        return spread / float(self.n) ** 0.5


def _outside_range(ladder: Sequence[SetSummary], target: TargetSummary) -> Iterator[Flag]:
    mean = target.mean_confidence
    lowest = min(ladder, key=lambda s: s.mean_confidence)
    highest = max(ladder, key=lambda s: s.mean_confidence)
    for end, excess, word in (
        (lowest, lowest.mean_confidence - mean, "below"),
        (highest, mean - highest.mean_confidence, "above"),
    ):
        noise = float(np.hypot(target.standard_error(end), end.standard_error))
        if excess > 3 * noise:
            yield Flag(
                "outside-range",
                f"the target's mean confidence {mean:.4f} lies {word} that of every surrogate set "
                f"({end.mean_confidence:.4f}, {end.name}): the shift is outside what was "
                "calibrated, and the confidences are a guess.",
            )


def not_monotone(ladder: Sequence[SetSummary]) -> Iterator[Flag]:
    """A flag if mean confidence rises on the way down a ladder, at the first step that does."""
    for steps in _ladders(ladder):
        for before, after in itertools.pairwise(steps):
            rise = after.mean_confidence - before.mean_confidence
            if rise > 2 * float(np.hypot(before.standard_error, after.standard_error)):
                yield Flag(
                    "not-monotone",
                    f"mean confidence rises from {before.mean_confidence:.4f} ({before.name}) to "
                    f"{after.mean_confidence:.4f} ({after.name}): on this ladder confidence does "
                    "not tell how hard the data is. Another corruption may.",
                )
                return


def _ladders(sets: Sequence[SetSummary]) -> list[list[SetSummary]]:
    """The clean set followed by the steps of one corruption, for each; else the given order."""
    if any(s.severity is None for s in sets):
        return [list(sets)]
    clean = [s for s in sets if s.severity == 0]
    names = dict.fromkeys(s.corruption for s in sets if s.severity)
    steps = sorted((s for s in sets if s.severity), key=lambda s: s.severity or 0)
    return [clean[:1] + [s for s in steps if s.corruption == name] for name in names]


def _in_doubt(
    target: TargetSummary, a: SetSummary, b: SetSummary, *, distance: str, margin: float
) -> bool:
    """Whether the choice between two sets could flip by two standard errors, or they are alike.

    The choice flips where the target's mean (or estimated accuracy) crosses the middle between
    those of the two sets. A few rows that are all above the threshold do not make an estimated
    accuracy certain: it is taken to vary no less than the accuracies of the sets.
    """
    own, of_sets = target.standard_error(a, b) ** 2, a.standard_error**2 + b.standard_error**2
    if distance == "ks":  # each statistic is known to about 0.26 √(1/n + 1/m)
        return margin < 2 * 0.26 * math.sqrt(2 / target.n + 1 / a.n + 1 / b.n)
    if distance == "wasserstein":  # the target's own noise enters both distances
        return margin < 2 * math.sqrt(4 * own + of_sets)
    value, of_a, of_b = target.mean_confidence, a.mean_confidence, b.mean_confidence
    if target.estimated_accuracy is not None:
        value, of_a, of_b = target.estimated_accuracy, a.accuracy, b.accuracy
        own = max(share * (1 - share) for share in (value, of_a, of_b)) / target.n
        of_sets = of_a * (1 - of_a) / a.n + of_b * (1 - of_b) / b.n
    if abs(of_a - of_b) < 2 * math.sqrt(of_sets):
        return True
    return abs(value - (of_a + of_b) / 2) < 2 * math.sqrt(own + of_sets / 4)
