"""Surrogate adaptive calibration: the map of the surrogate set that the target resembles."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count
from shiftcal.errors import FitWarning, InputError
from shiftcal.maps import Map
from shiftcal.methods.base import (
    Method,
    Selection,
    TargetSummary,
    fit_map,
    ladder_flags,
    nearest_first,
    not_monotone,
    temperature_of,
    warn_of_one_set,
)
from shiftcal.methods.rehearsals import Grouped
from shiftcal.numerics.samples import (
    atc_threshold,
    ks_distance,
    share_at_or_above,
    wasserstein_distance,
)
from shiftcal.numerics.softmax import entropy, p_max
from shiftcal.surrogates import SetSummary, SurrogateBank, SurrogateSet
from shiftcal.types import Flag, Floats, Logits, Probs

if TYPE_CHECKING:
    from shiftcal.scoring.statistics import ScoreStatistics

DISTANCES = ("mean", "ks", "wasserstein", "atc", "atc-entropy")


def _negative_entropy(logits: Logits) -> NDArray[np.float64]:
    return -entropy(logits)


# What is compared with the threshold, for the distances that have one.
_SCORES = {"atc": p_max, "atc-entropy": _negative_entropy}


@final
class SAC(Method):
    """One map per surrogate set; the target gets that of the set nearest in confidence.

    With ``μ_j`` the mean raw p_max of set ``j`` and ``μ`` that of the target,
    ``i = argmin_j |μ − μ_j|`` and the output is map ``i`` of the logits. Ties go to the least
    corrupted set. One choice per target, never per row. With a bank of one set it is TS, and
    ``fit`` warns of it.

    Args:
        map: Name of the calibration map, or an unfitted one with its settings.
        distance: Between raw p_max of target and set: ``"mean"`` (``|μ − μ_j|``), ``"ks"``
            (Kolmogorov-Smirnov) or ``"wasserstein"``. Or between the target's estimated accuracy
            and the accuracy of the set: ``"atc"`` or ``"atc-entropy"``, where the estimate is the
            share of the target whose raw p_max (negative entropy) is no less than a threshold
            below which as many rows of the clean set lie as are wrong. (Garg et al. 2022)
        peek: Look at this many randomly drawn target rows only; ``None`` looks at all.
        seed: Of that draw.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        maps_: The fitted map of every set.
        ladder_: Every set in numbers.
        distance_: The distance it was fitted for.
        samples_: Sorted raw p_max of every set, if that distance needs them.
        threshold_: Of the estimated accuracy, if that distance needs one.
    """

    name: ClassVar[str] = "sac"
    uses_target: ClassVar[bool] = True
    uses_bank: ClassVar[bool] = True

    ranges: ClassVar = {"threshold_": (-math.inf, math.inf)}

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
            # 1 here, 2 Method.fit, 3 the caller's line
            warnings.warn(flag.message, FitWarning, stacklevel=3)
        fitted = []
        for j, s in enumerate(bank, start=1):  # a loop, so that warnings point at the caller
            where = f"set {j} of {len(bank)} ({s.name})"
            fitted.append(fit_map(self.map, s.logits, s.labels, where=where))
        self.maps_ = tuple(fitted)
        warn_of_one_set(self, bank, fitted[0])
        compares_samples = self.distance_ in ("ks", "wasserstein")
        self.samples_ = tuple(np.sort(s.confidence()) for s in bank) if compares_samples else None
        self.threshold_ = self._threshold(bank.clean) if self.distance_ in _SCORES else None

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        rows = self._peek_at(logits)
        confidence = np.sort(p_max(rows))
        target = TargetSummary.of(confidence)
        if self.threshold_ is None:
            return self._select(target, self._distances(confidence))
        estimated = share_at_or_above(_SCORES[self.distance_](rows), self.threshold_)
        target = dataclasses.replace(target, estimated_accuracy=estimated)
        return self._select(target, [abs(estimated - s.accuracy) for s in self.ladder_])

    def after_load(self) -> None:
        """Reject a file whose maps and sets do not belong together."""
        super().after_load()
        if not hasattr(self, "n_classes_"):
            return
        n, chosen, samples = len(self.maps_), self.selection_, self.samples_
        if not n == len(self.ladder_) > 0 or (samples is not None and len(samples) != n):
            raise InputError("it must have one map for every set")
        if chosen is not None and not (chosen.index is not None and 0 <= chosen.index < n):
            raise InputError(f"it chose set {chosen.index!r} of {n}, which is not there")

    def adapt_statistics(self, statistics: ScoreStatistics) -> Selection:
        """Adapt to a target of which only the statistics are there, such as merged ones.

        The choice is that of :meth:`~Method.adapt` with all rows, if no two sets are equally near
        to 1e-12. Only the distance ``"mean"`` is known from statistics.

        Args:
            statistics: Of the target, with labels or without.

        Raises:
            InputError: If they have other classes, or the distance is another.
        """
        self._require_fitted()
        if self.distance_ != "mean":
            raise InputError(
                f"statistics tell the mean confidence, and this {self.name} was fitted with "
                f'distance="{self.distance_}". Fit it with distance="mean", or adapt to the rows.'
            )
        if statistics.k != self.n_classes_:
            raise InputError(
                f"statistics must be of the {self.n_classes_} classes it was fitted with; these "
                f"have {statistics.k}."
            )
        mean = statistics.mean_confidence
        target = TargetSummary(statistics.n, mean, statistics.sd_confidence)
        distances = [abs(mean - s.mean_confidence) for s in self.ladder_]
        self.selection_ = self._select(target, distances)
        return self.selection_

    def needs_rows(self) -> str | None:
        """Only the distance ``"mean"`` is known from sums, and only that of all rows."""
        if self.distance != "mean":
            return f'distance="{self.distance}" compares rows; distance="mean" needs sums only'
        if self.peek is not None:
            return f"peek={self.peek} draws rows; peek=None needs sums only"
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        mean = target.mean_confidence
        summary = TargetSummary(target.n, mean, target.sd_confidence)
        return self._select(summary, [abs(mean - s.mean_confidence) for s in self.ladder_])

    def _select(self, target: TargetSummary, distances: list[float]) -> Selection:
        order = nearest_first(self.ladder_, distances)
        chosen = order[0]
        summary = self.ladder_[chosen]
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
            details=_details(target),
            flags=(
                *ladder_flags(self.ladder_, target, distances, distance=self.distance_),
                *self._map_flags(chosen),
            ),
        )

    def _apply(self, logits: Logits) -> Probs:
        assert self.selection_ is not None
        assert self.selection_.index is not None
        return self.maps_[self.selection_.index].apply_checked(logits)

    def _peek_at(self, logits: Logits) -> Logits:
        if self.peek is None or self.peek >= len(logits):
            return logits
        rows = np.random.default_rng(self.seed).choice(len(logits), self.peek, replace=False)
        return logits[rows]

    def _distances(self, confidence: NDArray[np.float64]) -> list[float]:
        if self.samples_ is None:
            mean = float(confidence.mean())
            return [abs(mean - s.mean_confidence) for s in self.ladder_]
        measure = ks_distance if self.distance_ == "ks" else wasserstein_distance
        return [measure(confidence, sample) for sample in self.samples_]

    def _threshold(self, clean: SurrogateSet) -> float:
        n_wrong = int(np.count_nonzero(clean.logits.argmax(axis=1) != clean.labels))
        return atc_threshold(_SCORES[self.distance_](clean.logits), n_wrong)

    def _map_flags(self, chosen: int) -> tuple[Flag, ...]:
        status = self.maps_[chosen].status_
        if status.converged:
            return ()
        return (Flag("map-not-converged", f"the chosen set's map: {status.message}"),)


def _details(target: TargetSummary) -> dict[str, float]:
    estimated = target.estimated_accuracy
    return {} if estimated is None else {"estimated_accuracy": estimated}
