"""Rehearsal: the temperature that targets with outputs like these needed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, check_fraction
from shiftcal.errors import InputError
from shiftcal.maps import Map
from shiftcal.methods.base import FEW_ROWS, Method, Selection, fit_map, nearest_first
from shiftcal.methods.rehearsals import Answer, Grouped, Memory, grouped_moments, remember
from shiftcal.numerics.softmax import softmax
from shiftcal.persistence import POSITIVE, SHARE
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Flag, Floats, Interval, Logits, Probs

_DRAWS = 500
# The two answers differ, and it is not clear which holds.
_UNCLEAR, _APART = 0.1, math.log(1.25)


class Decision(NamedTuple):
    """What was decided for a target: the logarithm of a temperature, and which case it was."""

    log_t: float
    outside: bool = False
    clean: bool = False


@final
class Rehearsal(Method):
    """Learns on the bank which temperature goes with which outputs, under many class priors.

    Every surrogate set is drawn again and again, at several sizes and with its classes mixed in
    many ways, and the best temperature of every draw is known. Four statistics of the outputs (mean
    p_max, mean entropy, entropy of the mean output, and how sure the model is of each class) are
    regressed on it: ``log T = q(s)``, a quadratic with a ridge, once for draws with the class prior
    of the calibration set and once for draws with another; a logistic regression tells which of
    the two the target is, and the answers are averaged by its probability. A target as near to the
    clean set as half of its own samples are gets the temperature of the clean set, as TS does.
    Where the target's statistics are farther from the rehearsals than 99 in 100 of those of a
    corruption that is left out, the answer is halfway to that of the set nearest in mean
    confidence, and a flag says so.

    It works with any bank. What several corruptions give over one ladder is an interval that means
    more and, on most targets, less error. With a bank of one set it is TS.

    Args:
        level: Coverage aimed at by the interval of the temperature: over draws of the target's
            rows, and over the errors seen when a corruption is left out of the bank.
        seed: Of all draws.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperatures_: Temperature of every set.
        ladder_: Every set in numbers.
        memory_: What the rehearsals taught.
        level_: The level it was fitted for.
        seed_: The seed.
    """

    name: ClassVar[str] = "rehearsal"
    uses_target: ClassVar[bool] = True
    uses_bank: ClassVar[bool] = True

    ranges: ClassVar = {"temperatures_": POSITIVE, "level_": SHARE}

    temperatures_: tuple[float, ...]
    ladder_: tuple[SetSummary, ...]
    memory_: Memory
    level_: float
    seed_: int

    def __init__(self, *, level: float = 0.95, seed: int = 0, input: str = "logits") -> None:
        self.level = level
        self.seed = seed
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        self.level_ = check_fraction(self.level, name="level")
        self.seed_ = check_count(self.seed, name="seed", least=0)
        self.ladder_ = bank.summaries()
        fitted: list[Map] = []
        for j, s in enumerate(bank, start=1):  # a loop, so that warnings point at the caller
            where = f"set {j} of {len(bank)} ({s.name})"
            fitted.append(fit_map("temperature", s.logits, s.labels, where=where))
        self.temperatures_ = tuple(float(one.temperature_) for one in fitted)
        logs = [math.log(t) for t in self.temperatures_]
        self.memory_ = remember(bank, logs, seed=self.seed_)

    def after_load(self) -> None:
        """Reject a file that has not one temperature for every set."""
        super().after_load()
        if hasattr(self, "n_classes_") and not len(self.temperatures_) == len(self.ladder_) > 0:
            raise InputError("it must have one temperature for every set")

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        rng = np.random.default_rng(self.seed_)
        return self._select(grouped_moments(logits, rng), rng)

    def needs_rows(self) -> str | None:
        """Sums are all that is needed; those of groups of rows give the interval."""
        return None

    def _adapt_moments(self, target: Grouped) -> Selection:
        return self._select(target, np.random.default_rng(self.seed_))

    def _select(self, target: Grouped, rng: np.random.Generator) -> Selection:
        confidence = target.mean_confidence
        answer = self.memory_.answer(target, rng)
        decision = self.decide(answer, confidence)
        nearest = self._nearest(confidence)
        return Selection(
            self.name,
            temperature=math.exp(decision.log_t),
            temperature_interval=self._interval(target, decision, nearest, rng),
            n_target=target.n,
            mean_confidence=confidence,
            n_sets=len(self.ladder_),
            details={
                "estimated_accuracy": self._accuracy(answer, decision, nearest),
                "prior_moved": float(answer.moved),
                "temperature_same_prior": math.exp(float(answer.log_t)),
                "temperature_moved_prior": math.exp(float(answer.log_t_moved)),
                "temperature_nearest": self.temperatures_[nearest],
                "from_clean": float(answer.from_clean),
                "distance": float(answer.distance),
                "reach": self.memory_.reach,
            },
            flags=tuple(self._flags(answer, decision, target.n, nearest)),
        )

    def _apply(self, logits: Logits) -> Probs:
        assert self.selection_ is not None
        assert self.selection_.temperature is not None
        return softmax(logits, self.selection_.temperature)

    def decide(self, answer: Answer, confidence: float) -> Decision:
        """The temperature for what was answered of a target of this mean raw p_max."""
        if len(self.ladder_) == 1 or float(answer.from_clean) <= 1:
            return Decision(math.log(self.temperatures_[0]), clean=True)
        log_t = float(answer.mean_log_t())
        if float(answer.distance) <= self.memory_.reach:
            return Decision(log_t)
        halfway = (log_t + math.log(self.temperatures_[self._nearest(confidence)])) / 2
        return Decision(halfway, outside=True)

    def _nearest(self, confidence: float) -> int:
        distances = [abs(confidence - s.mean_confidence) for s in self.ladder_]
        return nearest_first(self.ladder_, distances)[0]

    def _accuracy(self, answer: Answer, decision: Decision, nearest: int) -> float:
        value = float(answer.mean_accuracy())
        return (value + self.ladder_[nearest].accuracy) / 2 if decision.outside else value

    def _interval(
        self, target: Grouped, decision: Decision, nearest: int, rng: np.random.Generator
    ) -> Interval | None:
        """Quantiles over rows drawn anew, either class prior, and errors as seen on the bank."""
        if len(self.ladder_) == 1:
            return None
        drawn = self.memory_.redrawn(target, _DRAWS, rng)
        same, moved = (
            said - rng.choice(errors.log_t, size=_DRAWS)
            for said, errors in (
                (drawn.log_t, self.memory_.errors),
                (drawn.log_t_moved, self.memory_.moved_errors),
            )
        )
        logs = np.where(rng.random(_DRAWS) < drawn.moved, moved, same)
        if decision.outside:  # how far to go towards the nearest set is a guess
            there = math.log(self.temperatures_[nearest])
            logs = logs + rng.random(_DRAWS) * (there - np.median(logs))
        low, high = _ends(logs, self.level_, decision.log_t)
        return Interval(
            math.exp(decision.log_t), low=math.exp(low), high=math.exp(high), level=self.level_
        )

    def _flags(self, answer: Answer, decision: Decision, n: int, nearest: int) -> Iterator[Flag]:
        if n < FEW_ROWS:
            yield Flag(
                "few-rows",
                f"{n} target rows were looked at: their statistics are uncertain, and so is the "
                f"temperature. Take {FEW_ROWS} or more.",
            )
        if len(self.ladder_) == 1:
            yield Flag(
                "one-set",
                "the bank has no set but the clean one: nothing was rehearsed, and the temperature "
                "is that of the clean set. Make a bank with corruptions.",
            )
            return
        if len({s.corruption for s in self.ladder_[1:]}) == 1:
            yield Flag(
                "one-corruption",
                "the bank has one corruption: how far the temperature may be off was measured "
                "along its ladder alone, and shifts of another kind can be far outside the "
                "interval. Make a bank of several corruptions.",
            )
        if decision.clean:
            yield Flag(
                "like-clean",
                "the target's outputs cannot be told from those of the clean set "
                f"({float(answer.from_clean):.2g} of the distance that half of such samples keep "
                "to): it gets the temperature of the clean set.",
            )
            return
        same, moved = math.exp(float(answer.log_t)), math.exp(float(answer.log_t_moved))
        probability = float(answer.moved)
        if decision.outside:
            yield Flag(
                "outside-bank",
                f"the target's outputs are {float(answer.distance):.3g} standard deviations from "
                f"those rehearsed, and {self.memory_.reach:.3g} are within reach: the shift is "
                "outside what was calibrated. The temperature is halfway to that of the set "
                f"nearest in confidence ({self.ladder_[nearest].name}, "
                f"T = {self.temperatures_[nearest]:.3g}), and the confidences are a guess.",
            )
        if probability > 0.5:
            yield Flag(
                "label-shift",
                f"the target's classes seem to be mixed otherwise than those of the calibration "
                f"set (probability {probability:.2f}): the answer rehearsed for that is used, "
                f"T = {moved:.3g}, not {same:.3g}.",
            )
        unclear = _UNCLEAR < probability < 1 - _UNCLEAR
        if unclear and abs(float(answer.log_t - answer.log_t_moved)) > _APART:
            yield Flag(
                "disagreement",
                f"T = {same:.3g} if the classes are mixed as in the calibration set, and "
                f"{moved:.3g} if they are not, which has the probability {probability:.2f}: the "
                "temperature lies between. Tell which it is, if you can.",
            )


def _ends(draws: NDArray[np.float64], level: float, value: float) -> tuple[float, float]:
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return min(float(low), value), max(float(high), value)
