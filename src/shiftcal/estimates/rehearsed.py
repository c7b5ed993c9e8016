"""Accuracy by rehearsal: that of targets with outputs like these."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count
from shiftcal._types import Flag, Logits
from shiftcal.estimates._estimate import LeftOut, Point, share_variance
from shiftcal.estimates.base import AccuracyEstimator
from shiftcal.methods.base import fit_map
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.rehearsals import Answer, Grouped, Memory, grouped_moments, remember
from shiftcal.surrogates import SetSummary, SurrogateBank

_DRAWS = 500


class _Decision(NamedTuple):
    """What was decided for a target, and the set nearest in mean confidence."""

    value: float
    nearest: SetSummary
    outside: bool


@final
class Rehearsed(AccuracyEstimator):
    """The accuracy that draws of the bank with outputs like the target's had.

    From the rehearsals of the method of that name: the sets of the bank, drawn again at several
    sizes and with their classes mixed in many ways. With ``s`` the four statistics of the outputs,
    ``a = (1 - m) σ(q(s)) + m σ(q'(s))``: two quadratics with a ridge for the log-odds of the
    accuracy, q for the class prior of the calibration set and q' for another, and ``m`` the
    probability that it is another, by a logistic regression. Beyond the reach of the rehearsals the
    estimate is halfway to the accuracy of the set nearest in mean confidence, and flagged. Holds
    where a corruption, or a mixture of classes, shows in the statistics as those of the bank do. A
    bank of one set gives the accuracy of that set, whatever the target.

    The interval is that of draws, not of deviations. Drawn are the rows of the target, one of the
    two priors by its probability, an error as seen for that prior where the corruption of a set was
    left out of the rehearsals, how many of the target's rows happen to be right (``a (1 - a) / n``;
    the accuracies rehearsed are those of whole sets under a prior, so that the errors have none of
    it), and the calibration samples (``a (1 - a) / m``, m the rows of the smallest set). Beyond the
    reach the interval goes from the answer to the nearest set.

    Args:
        seed: Of all draws.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        ladder_: Every set in numbers.
        memory_: What the rehearsals taught.
        seed_: The seed.
    """

    ladder_: tuple[SetSummary, ...]
    memory_: Memory
    seed_: int

    def __init__(self, *, seed: int = 0, input: str = "logits") -> None:
        self.seed = seed
        self.input = input

    @classmethod
    def of(cls, method: Rehearsal) -> Rehearsed:
        """The estimator that ``fit`` gives on the method's bank with its seed, without fitting.

        Both learn the same rehearsals, which is what takes the time.

        Args:
            method: Fitted.
        """
        method._require_fitted()
        made = cls(seed=method.seed_, input=method.input)
        made.seed_, made.ladder_, made.memory_ = method.seed_, method.ladder_, method.memory_
        made.left_out_ = tuple(made._shift_errors())
        made.class_names_, made.n_classes_ = method.class_names_, method.n_classes_
        return made

    def _fit(self, bank: SurrogateBank) -> None:
        self.seed_ = check_count(self.seed, name="seed", least=0)
        self.ladder_ = bank.summaries()
        log_t: list[float] = []
        for j, s in enumerate(bank, start=1):  # a loop, so that warnings point at the caller
            where = f"set {j} of {len(bank)} ({s.name})"
            fitted = fit_map("temperature", s.logits, s.labels, where=where)
            log_t.append(math.log(fitted.temperature_))
        self.memory_ = remember(bank, log_t, seed=self.seed_)

    def _shift_error(self, bank: SurrogateBank) -> Iterator[LeftOut]:
        return self._shift_errors()

    def _shift_errors(self) -> Iterator[LeftOut]:
        """What the rehearsals saw of it already: the mean over the draws of each set."""
        told = zip(self.memory_.ladders, self.memory_.accuracy_errors, self.ladder_, strict=True)
        for ladder, error, s in told:
            if ladder:
                said = min(max(s.accuracy + float(error), 0.0), 1.0)
                yield LeftOut(ladder - 1, s.name, s.accuracy, said)

    def _estimate(self, logits: Logits) -> Point:
        rng = np.random.default_rng(self.seed_)
        return self._point(grouped_moments(logits, rng), rng)

    def needs_rows(self) -> str | None:
        """Sums are all that is needed; those of groups of rows give the interval."""
        return None

    def _estimate_moments(self, target: Grouped) -> Point:
        return self._point(target, np.random.default_rng(self.seed_))

    def _point(self, target: Grouped, rng: np.random.Generator) -> Point:
        if len(self.ladder_) == 1:
            return self._alone(target.n)
        answer = self.memory_.answer(target, rng)
        confidence = target.mean_confidence
        decision = self._decide(answer, confidence)
        redrawn = self.memory_.redrawn(target, _DRAWS, rng)
        chance = share_variance(decision.value, target.n)
        return Point(
            decision.value,
            sampling_sd=math.sqrt(float(redrawn.mean_accuracy().var()) + chance),
            calibration_sd=self._calibration_sd(decision.value),
            details={
                "mean_confidence": confidence,
                "prior_moved": float(answer.moved),
                "accuracy_same_prior": float(answer.accuracy),
                "accuracy_moved_prior": float(answer.accuracy_moved),
                "distance": float(answer.distance),
                "reach": self.memory_.reach,
            },
            flags=tuple(self._flags(answer, decision)),
            draws=self._draws(redrawn, decision, target.n, rng),
        )

    def _alone(self, n: int) -> Point:
        """The accuracy of the only set: nothing was seen that could make it another."""
        value = self.ladder_[0].accuracy
        sampling_sd = math.sqrt(share_variance(value, n))
        return Point(value, sampling_sd, calibration_sd=self._calibration_sd(value))

    def _calibration_sd(self, value: float) -> float:
        return math.sqrt(share_variance(value, min(s.n for s in self.ladder_)))

    def _decide(self, answer: Answer, confidence: float) -> _Decision:
        nearest = min(self.ladder_, key=lambda s: abs(confidence - s.mean_confidence))
        outside = float(answer.distance) > self.memory_.reach
        value = float(answer.mean_accuracy())
        return _Decision((value + nearest.accuracy) / 2 if outside else value, nearest, outside)

    def _draws(
        self, redrawn: Answer, decision: _Decision, n: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """What the accuracy may be: :data:`_DRAWS` of all that is uncertain."""
        same, moved = (
            said - rng.choice(errors.accuracy, size=_DRAWS)
            for said, errors in (
                (redrawn.accuracy, self.memory_.errors),
                (redrawn.accuracy_moved, self.memory_.moved_errors),
            )
        )
        drawn = np.where(rng.random(_DRAWS) < redrawn.moved, moved, same)
        if decision.outside:  # how far to go towards the nearest set is a guess
            drawn += rng.random(_DRAWS) * (decision.nearest.accuracy - np.median(drawn))
        chance = math.sqrt(share_variance(decision.value, n))
        noise = math.hypot(chance, self._calibration_sd(decision.value))
        return np.asarray(drawn + noise * rng.standard_normal(_DRAWS))

    def _flags(self, answer: Answer, decision: _Decision) -> Iterator[Flag]:
        if decision.outside:
            yield Flag(
                "outside-bank",
                f"the target's outputs are {float(answer.distance):.3g} standard deviations from "
                f"those rehearsed, and {self.memory_.reach:.3g} are within reach: the estimate is "
                f"halfway to the accuracy of the set nearest in confidence "
                f"({decision.nearest.name}, {decision.nearest.accuracy:.3f}), and a guess.",
            )
        if float(answer.moved) > 0.5:
            yield Flag(
                "label-shift",
                "the target's classes seem to be mixed otherwise than those of the calibration set "
                f"(probability {float(answer.moved):.2f}): the accuracy rehearsed for that is "
                f"used, {float(answer.accuracy_moved):.3f}, not {float(answer.accuracy):.3f}.",
            )
