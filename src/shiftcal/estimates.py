"""Accuracy without labels: fitted on a surrogate bank, estimated for an unlabelled target.

``estimates.names()`` lists them, ``estimates.get("atc")`` and ``estimates.ATC`` give the class.
"""

from __future__ import annotations

import copy
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from shiftcal import methods, persistence
from shiftcal.checks import (
    check_choice,
    check_confidence,
    check_flag,
    check_fraction,
    check_logits,
)
from shiftcal.errors import FitWarning, InputError, ShiftcalError
from shiftcal.maps import Temperature
from shiftcal.methods import Method
from shiftcal.methods.class_bias import log_odds, shift_to_mean, sigmoid
from shiftcal.methods.method import given_bank, given_logits
from shiftcal.methods.realign import Realign
from shiftcal.methods.rehearsal import Answer, Grouped, Memory, Rehearsal, grouped_moments
from shiftcal.numerics.blocks import row_blocks
from shiftcal.numerics.samples import atc_threshold, share_at_or_above
from shiftcal.numerics.softmax import entropy, p_max
from shiftcal.persistence import Estimator, clone
from shiftcal.progress import track
from shiftcal.registry import ESTIMATORS
from shiftcal.scores import Scores
from shiftcal.surrogates import SetSummary, SurrogateBank
from shiftcal.types import Confidence, Flag, Logits


@dataclass(frozen=True)
class AccuracyEstimate:
    """The accuracy of a model on unlabelled data, estimated.

    Attributes:
        value: The estimate, a fraction.
        low: Lower end of the interval, at least 0.
        high: Upper end, at most 1.
        level: Coverage aimed at, such as 0.95.
        n_target: Rows of the target.
        estimator: Name of the estimator.
        details: What the interval is made of (``sampling_sd``, ``calibration_sd`` and, where it
            could be measured, ``shift_error`` and ``shift_fits``, the number of fits it is from),
            and further numbers of the estimator, by name.
        flags: Reasons not to trust the estimate.
    """

    value: float
    low: float
    high: float
    level: float
    n_target: int
    estimator: str
    details: dict[str, float] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()

    def has(self, code: str) -> bool:
        """Whether a flag of this code was raised."""
        return any(flag.code == code for flag in self.flags)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        value, low, high = (100 * x for x in (self.value, self.low, self.high))
        return f"estimated accuracy {value:.1f} % ({low:.1f} to {high:.1f})"

    def __repr__(self) -> str:
        return f"<{self.estimator}: {self}>"


@dataclass(frozen=True)
class LeftOut:
    """A set of the bank, estimated by a fit without its corruption.

    Attributes:
        group: Number of the fit, from 0: sets that were left out together have the same.
        name: Name of the set.
        accuracy: Its true accuracy.
        estimate: The estimate.
    """

    group: int
    name: str
    accuracy: float
    estimate: float


@dataclass(frozen=True)
class Point:
    """An estimate before its interval.

    Attributes:
        value: The estimate.
        sampling_sd: Its standard deviation over draws of the target.
        calibration_sd: Its standard deviation over draws of the calibration samples.
        details: Further numbers, by name.
        flags: Warnings.
        draws: Draws of the accuracy; ``None`` if only the deviations are known.
    """

    value: float
    sampling_sd: float
    calibration_sd: float
    details: dict[str, float] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    draws: NDArray[np.float64] | None = None


def share_variance(share: float, n: int) -> float:
    """Variance of a share of ``n`` rows, ``p (1 - p) / n`` with p drawn a little to the middle.

    Two rows on either side more (Agresti and Coull 1998): a share of 0 or 1 is not certain.
    """
    p = (n * share + 2) / (n + 4)
    return p * (1 - p) / n


_NO_SHIFT_ERROR = Flag(
    "no-shift-error",
    "no set of the bank could be left out to see how far the estimate is off under shift: the "
    "interval covers sampling only. Fit on a bank of several sets.",
)


class AccuracyEstimator(Estimator, ABC):
    """An estimator of accuracy: ``fit`` on a bank, ``estimate`` for an unlabelled target.

    A new estimator is a final subclass with a ``name``, with a keyword-only ``__init__`` that takes
    at least ``input``, with ``_fit`` and ``_estimate``, and with every learnt attribute annotated
    in the class body. ``estimate`` does not change it.

    The interval is ``value ± sqrt(z² (s² + c²) + t² e²)``, cut at 0 and 1. ``s`` is the standard
    deviation over draws of the target, ``c`` that over draws of the calibration samples; each
    estimator says how it knows them. ``e`` is the error of the estimator itself under shift: every
    corruption of the bank in turn (every set but the clean one, if there is one corruption only)
    is left out, the estimator is fitted on the rest and used on the sets left out, and ``e`` is
    the root mean square of its errors there. z and t are the quantiles ``(1 + level) / 2`` of the
    normal and, since few fits tell ``e``, of Student's distribution with as many degrees of
    freedom as there were fits. It covers targets that are no further from the bank than its
    corruptions are from one another; it does not
    cover other kinds of shift, such as label shift. Estimators that simulate the accuracy use the
    quantiles of their draws instead.

    Attributes:
        uses_bank: Whether it learns from all sets of the bank; else from the clean one only.
        n_classes_: Number of classes, from the columns of the bank.
        class_names_: Their names, if the bank has them.
        left_out_: Every set that was left out, with its accuracy and what was estimated; empty
            for a bank of one set.
    """

    kind: ClassVar[str] = "accuracy-estimator"
    uses_bank: ClassVar[bool] = True

    input: str
    n_classes_: int
    class_names_: tuple[str, ...] | None
    left_out_: tuple[LeftOut, ...]

    @final
    def fit(self, bank: object, labels: object = None) -> Self:
        """Learn how accuracy shows in the outputs, and how well that holds under shift.

        Args:
            bank: A :class:`SurrogateBank`, or the folder of one; or logits ``(n, k)`` of a
                calibration set, with ``labels``, which make a bank of one set.
            labels: ``(n,)``, only with logits.

        Raises:
            InputError: If the input cannot be used, or is of another kind than ``input`` says.
        """
        checked = given_bank(bank, labels, input=self.input, name=self.name)
        self.__dict__.pop("n_classes_", None)  # a failed fit leaves it unfitted, not half fitted
        self._fit(checked)
        self.left_out_ = tuple(self._shift_error(checked))
        self.class_names_ = checked.classes
        self.n_classes_ = checked.n_classes
        return self

    @final
    def estimate(self, logits: object, *, level: float = 0.95) -> AccuracyEstimate:
        """The accuracy of the model on an unlabelled target.

        Args:
            logits: ``(n, k)``, of the kind ``input`` says; or :class:`Scores` of either kind.
            level: Coverage of the interval, strictly between 0 and 1.
        """
        self._require_fitted()
        level = check_fraction(level, name="level")
        z = given_logits(logits, input=self.input, k=self.n_classes_, classes=self.class_names_)
        return self._with_interval(self._estimate(z), len(z), level)

    @final
    def estimate_moments(self, target: Grouped, *, level: float = 0.95) -> AccuracyEstimate:
        """The accuracy on a target of which only sums over its rows are known.

        The value is that of :meth:`estimate` with the rows, to rounding; where :meth:`needs_rows`
        gives no reason not to.

        Args:
            target: Sums of the moments of raw softmax rows, with the squares of p_max.
            level: Coverage of the interval, strictly between 0 and 1.
        """
        self._require_fitted()
        level = check_fraction(level, name="level")
        return self._with_interval(self._estimate_moments(target), target.n, level)

    def needs_rows(self) -> str | None:
        """Why sums of fixed size over the target's rows are not enough; ``None`` if they are."""
        moments = type(self)._estimate_moments is not AccuracyEstimator._estimate_moments
        return None if moments else "it looks at every row of the target at once"

    def _with_interval(self, point: Point, n: int, level: float) -> AccuracyEstimate:
        from scipy.special import stdtrit

        q, left_out, shift = (1 + level) / 2, self.left_out_, dict[str, float]()
        if left_out:
            squares = [(out.estimate - out.accuracy) ** 2 for out in left_out]
            shift["shift_error"] = float((sum(squares) / len(squares)) ** 0.5)
            shift["shift_fits"] = float(len({out.group for out in left_out}))
        if point.draws is None:
            half = NormalDist().inv_cdf(q) * math.hypot(point.sampling_sd, point.calibration_sd)
            if shift:
                half = math.hypot(half, stdtrit(shift["shift_fits"], q) * shift["shift_error"])
            low, high = point.value - half, point.value + half
        else:
            low, high = np.quantile(point.draws, [(1 - level) / 2, q]).tolist()
            low, high = min(low, point.value), max(high, point.value)
        sampling = {"sampling_sd": point.sampling_sd, "calibration_sd": point.calibration_sd}
        return AccuracyEstimate(
            _in_unit(point.value),
            _in_unit(low),
            _in_unit(high),
            level=level,
            n_target=n,
            estimator=self.name,
            details={**sampling, **shift, **point.details},
            flags=point.flags if shift else (*point.flags, _NO_SHIFT_ERROR),
        )

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        persistence.save(self, path)

    @abstractmethod
    def _fit(self, bank: SurrogateBank) -> None:
        """Learn from a checked bank; set every attribute the class itself declares."""

    @abstractmethod
    def _estimate(self, logits: Logits) -> Point:
        """The estimate for a checked target, without changing anything."""

    def _estimate_moments(self, target: Grouped) -> Point:
        """The estimate for the sums of a target, if it can be made from them."""
        raise NotImplementedError

    def _shift_error(self, bank: SurrogateBank) -> Iterator[LeftOut]:
        """Errors on the sets of the bank, each estimated by a fit that saw none of its corruption.

        Parts of the bank that it cannot be fitted on are skipped.
        """
        groups: dict[object, list[int]] = {}
        for j, s in enumerate(bank):
            if j:
                groups.setdefault(j if s.corruption is None else s.corruption, []).append(j)
        together = list(groups.values())
        if len(groups) == 1:  # of a single corruption, set by set
            together = [[j] for j in range(1, len(bank))]
        for number, group in enumerate(track(together, "leaving out corruptions")):
            other: AccuracyEstimator = self
            if self.uses_bank:
                kept = [s for j, s in enumerate(bank) if j not in group]
                other = clone(self)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FitWarning)  # that on the whole bank has warned
                    try:
                        other._fit(SurrogateBank(kept, classes=bank.classes, input=bank.input))
                    except ShiftcalError:
                        continue
            for out in (bank[j] for j in group):
                estimate = _in_unit(other._estimate(out.logits).value)
                yield LeftOut(number, out.name, out.summary().accuracy, estimate)


def _in_unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)


names = ESTIMATORS.names
get = ESTIMATORS.get

__all__ = ["AccuracyEstimate", "AccuracyEstimator", "LeftOut", "Point", "Selective"]
__all__ += ["accuracy_interval", "agreement", "get", "names", "selective"]


# Errors per disagreement lie within this factor of 1 (benchmarks/accuracy/agreement.py).
_FACTOR = 1.75


def agreement(logits: object, *others: object, level: float = 0.95) -> AccuracyEstimate:
    """The accuracy of a model on unlabelled rows, from the predictions of other models.

    ``a`` is the share of rows where another model predicts the same class, averaged over the
    others. It is the accuracy if predictions differ from one another as much as from the labels
    (Jiang et al., 2022). No bank is needed. Shared mistakes make it too high, another model that is
    much worse makes it too low: use models of about the same accuracy, trained in different ways.

    The interval lets the share of errors be ``(1 - a) / 1.75`` to ``1.75 (1 - a)``, in addition to
    the draw of the target. The factor is what adapted networks needed.

    Args:
        logits: ``(n, k)`` of the model; or :class:`Scores` of either kind.
        *others: Those of other models for the same rows, in the same order.
        level: Coverage of the part of the interval that is due to the draw of the target.

    Raises:
        InputError: If there is no other model, or rows or classes differ.
    """
    level = check_fraction(level, name="level")
    classes = ids = None
    if isinstance(logits, Scores):
        classes, ids, logits = logits.classes, logits.ids, logits.logits()
    first = check_logits(logits)
    rest = [given_logits(o, input="logits", k=first.shape[1], classes=classes) for o in others]
    if not rest or any(len(other) != len(first) for other in rest):
        rows = ", ".join(f"{len(one):,}" for one in (first, *rest))
        raise InputError(
            "agreement needs the outputs of two or more models for the same rows; got outputs of "
            f"{len(rest) + 1} for {rows} rows."
        )
    known = [o.ids for o in others if isinstance(o, Scores) and o.ids is not None]
    if ids is not None and any(not np.array_equal(ids, other) for other in known):
        raise InputError(
            "agreement needs outputs for the same rows in the same order, and the ids of these "
            "scores differ. Runs of another seed hold out other rows: use the same seed."
        )
    predicted, n = first.argmax(axis=1), len(first)
    shares = [float((one.argmax(axis=1) == predicted).mean()) for one in rest]
    value = sum(shares) / len(shares)
    sampling_sd = math.sqrt(share_variance(value, n))
    half = NormalDist().inv_cdf((1 + level) / 2) * sampling_sd
    low = value - math.hypot(half, (_FACTOR - 1) * (1 - value))
    high = value + math.hypot(half, (1 - 1 / _FACTOR) * (1 - value))
    return AccuracyEstimate(
        value,
        _in_unit(low),
        _in_unit(high),
        level=level,
        n_target=n,
        estimator="agreement",
        details={"sampling_sd": sampling_sd, "least": min(shares), "most": max(shares)},
    )


def clean_temperature(bank: SurrogateBank, *, calibrated: bool) -> float:
    """The temperature of least NLL on the clean set; 1 if nothing is to be calibrated."""
    if not check_flag(calibrated, name="calibrated"):
        return 1.0
    clean = bank.clean
    scaling = Temperature().fit_checked(clean.logits, clean.labels, None)
    if not scaling.status_.converged:
        # 1 here, 2 _fit, 3 AccuracyEstimator.fit, 4 the caller's line
        warnings.warn(f"{clean.name}: {scaling.status_.message}", FitWarning, stacklevel=4)
    return scaling.temperature_


@final
class ATC(AccuracyEstimator):
    """The share of rows above a score threshold that is fitted to the errors on the clean set.

    ``t`` such that ``#{s_i < t} = #{wrong i}`` on the clean set; the estimate is the share of
    target rows with ``s >= t``. The score is p_max or negative entropy ``Σ p log p``. It
    assumes that the score at ``t`` means the same under shift; if errors are confident, the
    estimate is too high.

    The interval covers the draw of the target (``2 a (1 - a) / n``: the share is drawn, and so is
    the number right; it is too wide where both move together), that of the calibration set (``t``
    for one standard error of errors more and fewer, ``sqrt(d / m)`` with ``d`` the share of the m
    clean rows on the wrong side of ``t``), and the error under shift of
    :class:`AccuracyEstimator`.

    Args:
        score: ``"confidence"`` or ``"entropy"``.
        calibrated: Whether logits are first divided by the temperature of the clean set.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        score_: The score it was fitted for.
        temperature_: What logits are divided by.
        thresholds_: ``t``, then that of one standard error fewer and more errors.
    """

    name: ClassVar[str] = "atc"
    uses_bank: ClassVar[bool] = False

    score_: str
    temperature_: float
    thresholds_: tuple[float, ...]

    def __init__(
        self, *, score: str = "confidence", calibrated: bool = True, input: str = "logits"
    ) -> None:
        self.score = score
        self.calibrated = calibrated
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        self.score_ = check_choice(self.score, ("confidence", "entropy"), name="score")
        self.temperature_ = clean_temperature(bank, calibrated=self.calibrated)
        clean = bank.clean
        n = len(clean)
        scores = self._scores(clean.logits)
        right = clean.logits.argmax(axis=1) == clean.labels
        wrong = n - int(right.sum())
        threshold = atc_threshold(scores, wrong)
        misplaced = int(((scores >= threshold) != right).sum())
        spread = max(1, round(math.sqrt(misplaced)))
        ends = max(wrong - spread, 0), min(wrong + spread, n)
        self.thresholds_ = (threshold, *(atc_threshold(scores, errors) for errors in ends))

    def _estimate(self, logits: Logits) -> Point:
        scores = self._scores(logits)
        value, most, least = (share_at_or_above(scores, t) for t in self.thresholds_)
        return Point(
            value,
            sampling_sd=math.sqrt(2 * share_variance(value, len(scores))),
            calibration_sd=(most - least) / 2,
            details={"threshold": self.thresholds_[0], "temperature": self.temperature_},
        )

    def _scores(self, logits: Logits) -> NDArray[np.float64]:
        if self.score_ == "confidence":
            return p_max(logits, self.temperature_)
        return -entropy(logits.astype(np.float64) / self.temperature_)


@final
class DoC(AccuracyEstimator):
    """Clean accuracy plus the change of mean confidence from the clean set to the target.

    ``a = a_clean + mean c_target - mean c_clean``, with ``c`` the p_max after the temperature of
    the clean set. It assumes that confidence falls as much as accuracy; under shift it
    usually falls less, and the estimate is too high.

    The interval covers the draw of the target (``a (1 - a) / n``, which is the variance of the
    number right given the confidences, plus that of the confidences), that of the calibration set
    (the variance of right minus confidence over its rows), and the error under shift of
    :class:`AccuracyEstimator`.

    Args:
        calibrated: Whether logits are first divided by the temperature of the clean set.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperature_: What logits are divided by.
        gap_: Accuracy minus mean confidence of the clean set.
        gap_sd_: Its standard error.
    """

    name: ClassVar[str] = "doc"
    uses_bank: ClassVar[bool] = False

    temperature_: float
    gap_: float
    gap_sd_: float

    def __init__(self, *, calibrated: bool = True, input: str = "logits") -> None:
        self.calibrated = calibrated
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        self.temperature_ = clean_temperature(bank, calibrated=self.calibrated)
        clean = bank.clean
        right = clean.logits.argmax(axis=1) == clean.labels
        gaps = right - p_max(clean.logits, self.temperature_)
        self.gap_ = float(gaps.mean())
        self.gap_sd_ = float(gaps.std()) / math.sqrt(len(gaps))

    def _estimate(self, logits: Logits) -> Point:
        confidence = float(p_max(logits, self.temperature_).mean())
        value = _in_unit(confidence + self.gap_)
        return Point(
            value,
            sampling_sd=math.sqrt(share_variance(value, len(logits))),
            calibration_sd=self.gap_sd_,
            details={"mean_confidence": confidence, "temperature": self.temperature_},
        )


@final
class MeanConfidence(AccuracyEstimator):
    """The mean calibrated confidence of a method adapted to the target.

    ``a = mean c_i`` with ``c`` the calibrated confidence of the predicted class: calibrated
    confidences add up to the number of correct predictions. It is as accurate as the method is
    calibrated on the target.

    The interval covers the draw of the target (``Σ c_i (1 - c_i) / n²``, the variance of the
    number right given the confidences, plus ``var(c) / n``, that of the confidences: together
    ``a (1 - a) / n``), that of the calibration set (as if its m rows had fixed the mean of
    confidences like these: ``mean c (1 - c) / m``), and the error under shift of
    :class:`AccuracyEstimator`.

    Args:
        method: Name of a method, or a method with the settings wanted, fitted or not. It is
            copied and fitted on the bank; the one given stays as it is. Methods that need more
            than outputs of the target (features, mixed images) cannot be used.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        method_: The method, fitted on the bank.
        n_calibration_: Rows of the clean set.
    """

    name: ClassVar[str] = "mean-confidence"

    method_: Method
    n_calibration_: int

    def __init__(self, *, method: str | Method = "sac", input: str = "logits") -> None:
        self.method = method
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        self.method_ = self._fresh().fit(bank)
        self.n_calibration_ = len(bank.clean)

    def _estimate(self, logits: Logits) -> Point:
        method = copy.copy(self.method_)  # adapting changes it
        selection = method.selection_ = method._adapt(logits, None)
        c = method._confidence(logits)
        value = float(c.mean())
        details = {} if selection.temperature is None else {"temperature": selection.temperature}
        return Point(
            value,
            sampling_sd=math.sqrt(share_variance(value, len(c))),
            calibration_sd=math.sqrt(float((c * (1 - c)).mean()) / self.n_calibration_),
            details=details,
            flags=selection.flags,
        )

    def _fresh(self) -> Method:
        method = self.method
        if isinstance(method, str):
            made: Method = methods.get(method)(input=self.input)
        elif isinstance(method, Method):
            made = clone(method)
        else:
            raise InputError(f"method must be a method or the name of one; got {method!r}.")
        if made.input != self.input or made.uses_features or made.uses_mixed:
            raise InputError(
                f"{self.name} needs a method for {self.input} that works with outputs only, such "
                f"as sac; {made.name} is for {made.input}, or needs features or mixed images."
            )
        return made


_DRAWS = 500


@final
class Rehearsed(AccuracyEstimator):
    """The accuracy of draws from the bank whose outputs resemble the target's.

    It uses the draws of :class:`Rehearsal`: the sets of the bank resampled with several sizes and
    class priors. With ``s`` the four statistics of the outputs,
    ``a = (1 - m) σ(q(s)) + m σ(q'(s))``: ridge-regularised quadratics for the log-odds of the
    accuracy, q under the class prior of the calibration set and q' under another, and ``m`` the
    probability of another prior, from a logistic regression. Beyond the reach of the draws the
    estimate is halfway to the accuracy of the set nearest in mean confidence, and flagged. It
    assumes that shifts and class priors affect the statistics as they do on the bank. With a bank
    of one set it is the accuracy of that set.

    The interval is simulated. Each draw takes a resample of the target's rows, one of the two
    priors by its probability, an error measured under that prior with the corruption left out, the
    number of correct rows (``a (1 - a) / n``, which those errors do not contain) and the
    calibration samples (``a (1 - a) / m``, m the rows of the smallest set). Beyond the reach the
    interval extends from the estimate to the nearest set.

    Args:
        seed: Of all draws.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        ladder_: Every set in numbers.
        memory_: What was learned from the draws.
        seed_: The seed.
    """

    name: ClassVar[str] = "rehearsed"

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
        made.left_out_ = tuple(made._shift_error(None))
        made.class_names_, made.n_classes_ = method.class_names_, method.n_classes_
        return made

    def _fit(self, bank: SurrogateBank) -> None:
        method = Rehearsal(seed=self.seed, input=self.input)
        method._fit(bank, None)
        self.seed_, self.ladder_, self.memory_ = method.seed_, method.ladder_, method.memory_

    def _shift_error(self, bank: SurrogateBank | None) -> Iterator[LeftOut]:
        """What the rehearsals saw of it already: the mean over the draws of each set."""
        memory = self.memory_
        for ladder, error, s in zip(
            memory.ladders, memory.accuracy_errors, self.ladder_, strict=True
        ):
            if ladder:
                yield LeftOut(ladder - 1, s.name, s.accuracy, _in_unit(s.accuracy + float(error)))

    def _estimate(self, logits: Logits) -> Point:
        rng = np.random.default_rng(self.seed_)
        return self._point(grouped_moments(logits, rng), rng)

    def _estimate_moments(self, target: Grouped) -> Point:
        return self._point(target, np.random.default_rng(self.seed_))

    def _point(self, target: Grouped, rng: np.random.Generator) -> Point:
        smallest = min(s.n for s in self.ladder_)
        if len(self.ladder_) == 1:  # nothing was seen that could make it another
            value = self.ladder_[0].accuracy
            sampling, calibration = (share_variance(value, n) for n in (target.n, smallest))
            return Point(value, math.sqrt(sampling), math.sqrt(calibration))
        memory, confidence = self.memory_, target.mean_confidence
        answer = memory.answer(target, rng)
        nearest = min(self.ladder_, key=lambda s: abs(confidence - s.mean_confidence))
        outside = float(answer.distance) > memory.reach
        value = float(answer.mean_accuracy())
        if outside:
            value = (value + nearest.accuracy) / 2
        redrawn = memory.redrawn(target, _DRAWS, rng)
        chance, calibration = (share_variance(value, n) for n in (target.n, smallest))
        # What the accuracy may be: draws of all that is uncertain.
        same, moved = (
            accuracy - rng.choice(errors.accuracy, size=_DRAWS)
            for accuracy, errors in (
                (redrawn.accuracy, memory.errors),
                (redrawn.accuracy_moved, memory.moved_errors),
            )
        )
        drawn = np.where(rng.random(_DRAWS) < redrawn.moved, moved, same)
        if outside:  # how far to go towards the nearest set is a guess
            drawn += rng.random(_DRAWS) * (nearest.accuracy - np.median(drawn))
        noise = math.hypot(math.sqrt(chance), math.sqrt(calibration))
        return Point(
            value,
            sampling_sd=math.sqrt(float(redrawn.mean_accuracy().var()) + chance),
            calibration_sd=math.sqrt(calibration),
            details={
                "mean_confidence": confidence,
                "prior_moved": float(answer.moved),
                "accuracy_same_prior": float(answer.accuracy),
                "accuracy_moved_prior": float(answer.accuracy_moved),
                "distance": float(answer.distance),
                "reach": memory.reach,
            },
            flags=tuple(self._flags(answer, nearest if outside else None)),
            draws=np.asarray(drawn + noise * rng.standard_normal(_DRAWS)),
        )

    def _flags(self, answer: Answer, nearest: SetSummary | None) -> Iterator[Flag]:
        if nearest is not None:
            yield Flag(
                "outside-bank",
                f"the target's outputs are {float(answer.distance):.3g} standard deviations from "
                f"those rehearsed, and {self.memory_.reach:.3g} are within reach: the estimate is "
                f"halfway to the accuracy of the set nearest in confidence ({nearest.name}, "
                f"{nearest.accuracy:.3f}), and a guess.",
            )
        if float(answer.moved) > 0.5:
            yield Flag(
                "label-shift",
                "the class prior seems to differ from that of the calibration set (probability "
                f"{float(answer.moved):.2f}): the accuracy rehearsed for that is used, "
                f"{float(answer.accuracy_moved):.3f}, not {float(answer.accuracy):.3f}.",
            )


@final
class SurrogateCurve(AccuracyEstimator):
    """The accuracy of the sets of the bank at the target's mean confidence.

    ``a = g(μ)`` with ``μ`` the mean raw p_max of the target and ``g`` the non-decreasing function
    of least ``Σ n_j (g(μ_j) - a_j)²`` over the sets, linear between them and constant beyond. If
    several corruptions have different accuracies at one confidence, g averages them. It assumes
    that accuracy falls with confidence as on the bank. With a bank of one set it is the accuracy
    of that set.

    The interval covers the draw of the target (``a (1 - a) / n``, and what g makes of one standard
    error of μ), that of the calibration samples (``a (1 - a) / m``, m the rows of the smallest
    set; the sets share samples, so that more sets make it no smaller), and the error under shift
    of :class:`AccuracyEstimator`.

    Args:
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        confidence_: ``(m,)`` mean confidences of the sets, ascending, each once.
        accuracy_: ``(m,)`` g there.
        ladder_: Every set in numbers.
    """

    name: ClassVar[str] = "surrogate-curve"
    confidence_: NDArray[np.float64]
    accuracy_: NDArray[np.float64]
    ladder_: tuple[SetSummary, ...]

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _fit(self, bank: SurrogateBank) -> None:
        from sklearn.isotonic import isotonic_regression

        self.ladder_ = bank.summaries()
        weights = np.array([s.n for s in self.ladder_], dtype=np.float64)
        right = weights * [s.accuracy for s in self.ladder_]
        means = [s.mean_confidence for s in self.ladder_]
        self.confidence_, which = np.unique(means, return_inverse=True)
        mass = np.bincount(which, weights).astype(np.float64)
        self.accuracy_ = isotonic_regression(np.bincount(which, right) / mass, sample_weight=mass)

    def _estimate(self, logits: Logits) -> Point:
        confidence = p_max(logits)
        return self._point(len(confidence), float(confidence.mean()), float(confidence.std()))

    def _estimate_moments(self, target: Grouped) -> Point:
        return self._point(target.n, target.mean_confidence, target.sd_confidence)

    def _point(self, n: int, mean: float, sd: float) -> Point:
        error = sd / math.sqrt(n)
        low, value, high = (
            float(np.interp(mean + step, self.confidence_, self.accuracy_))
            for step in (-error, 0.0, error)
        )
        smallest = min(s.n for s in self.ladder_)
        return Point(
            value,
            sampling_sd=math.hypot((high - low) / 2, math.sqrt(share_variance(value, n))),
            calibration_sd=math.sqrt(share_variance(value, smallest)),
            details={"mean_confidence": mean},
            flags=tuple(self._outside(mean, error)),
        )

    def _outside(self, mean: float, error: float) -> Iterator[Flag]:
        by_confidence = sorted(self.ladder_, key=lambda s: s.mean_confidence)
        for end, sign, word in ((by_confidence[0], -1, "below"), (by_confidence[-1], 1, "above")):
            excess = sign * (mean - end.mean_confidence)
            if excess > 3 * math.hypot(error, end.standard_error):
                yield Flag(
                    "outside-range",
                    f"the target's mean confidence {mean:.4f} lies {word} that of every surrogate "
                    f"set ({end.mean_confidence:.4f}, {end.name}): the accuracy given is that "
                    "of this end of the bank, and a guess.",
                )


# --------------------------------------------------------------------------------------
# Selective prediction: the accuracy of the most confident rows.
# --------------------------------------------------------------------------------------


# Confident rows are off by more than the mean of all rows is.
_CONFIDENT = 1.5


@dataclass(frozen=True)
class Selective:
    """Which rows to keep so that the accuracy among them is high enough.

    Attributes:
        threshold: Keep rows whose confidence is at least this; ``inf`` if no row can be kept.
        coverage: Share of rows that are kept.
        accuracy: Expected accuracy of the kept rows; NaN if there are none.
        low: Lower end of its interval.
        high: Upper end.
        level: Coverage of the interval.
        target_accuracy: The requested accuracy.
        n: Rows.
        n_kept: Rows that are kept.
    """

    threshold: float
    coverage: float
    accuracy: float
    low: float
    high: float
    level: float
    target_accuracy: float
    n: int
    n_kept: int

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.n_kept:
            return f"no rows can be kept at {100 * self.target_accuracy:g} % accuracy"
        value, low, high = (100 * x for x in (self.accuracy, self.low, self.high))
        return (
            f"keep {self.n_kept:,} of {self.n:,} rows ({100 * self.coverage:.1f} %), with "
            f"confidence {self.threshold:.4g} or more: expected accuracy {value:.1f} % "
            f"({low:.1f} to {high:.1f})"
        )


AccuracyEnds: TypeAlias = tuple[float | None, float | None]


class Kept(NamedTuple):
    """The rows with the highest confidence.

    Attributes:
        rows: ``(m,)`` how many.
        accuracy: ``(m,)`` their expected accuracy.
        low: ``(m,)`` lower end of its interval.
        high: ``(m,)`` upper end.
    """

    rows: NDArray[np.intp]
    accuracy: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def kept_rows(c: Confidence, rows: NDArray[np.intp], ends: AccuracyEnds, level: float) -> Kept:
    """The accuracy expected of the first ``rows`` (m,), rising, of falling confidences ``c`` (n,).

    Args:
        c: Confidences.
        rows: How many are kept.
        ends: Of the interval of the accuracy of all rows.
        level: Coverage of intervals.
    """

    def means(of: Callable[[Confidence], NDArray[np.float64]]) -> NDArray[np.float64]:
        sums, total = np.empty(len(rows)), 0.0
        for some in row_blocks(len(c), 1):
            running = np.cumsum(np.append(total, of(c[some])))
            here = (rows > some.start) & (rows <= some.stop)
            sums[here] = running[rows[here] - some.start]
            total = running[-1]
        return sums / rows

    value = means(lambda block: block.astype(np.float64))
    spread = (rows * value + 2) / (rows + 4)
    chance = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(spread * (1 - spread) / rows)
    sides = []
    for end in ends:
        shifted = np.zeros_like(value)
        if end is not None:
            shift = _CONFIDENT * shift_to_mean(c, end)
            shifted = means(partial(_moved, shift)) - value
        sides.append(shifted)
    low = value - np.hypot(chance, np.minimum(sides[0], 0))
    high = value + np.hypot(chance, np.maximum(sides[1], 0))
    return Kept(rows, value, np.maximum(low, 0), np.minimum(high, 1))


def _moved(shift: float, confidence: Confidence) -> NDArray[np.float64]:
    return sigmoid(log_odds(confidence) + shift)


def _most_rows(c: Confidence, goal: float) -> int:
    """The most rows of falling confidences whose mean reaches the goal; ties stay together."""
    most, total = 0, 0.0
    for some in row_blocks(len(c), 1):
        running = np.cumsum(np.append(total, c[some]))[1:]
        after = np.append(c[some.start + 1 : some.stop + 1], -1.0)[: len(running)]
        counts = np.arange(some.start, some.stop) + 1
        enough = np.flatnonzero((c[some] != after) & (running / counts >= goal))
        most = int(counts[enough[-1]]) if len(enough) else most
        total = running[-1]
    return most


def falling(confidence: Confidence) -> NDArray[np.float64]:
    """Confidences from the highest; a view if they rise already, for they may be many."""
    n = len(confidence)
    blocks = (confidence[max(some.start - 1, 0) : some.stop] for some in row_blocks(n, 1))
    rising = all((block[1:] >= block[:-1]).all() for block in blocks)
    return (confidence if rising else np.sort(confidence)).astype(np.float64, copy=False)[::-1]


def check_interval(accuracy: object) -> AccuracyEnds:
    """An interval of accuracy, checked; twice ``None`` if there is none."""
    if accuracy is None:
        return None, None
    try:
        low, high = (float(end) for end in accuracy)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low = high = math.nan
    if not 0 <= low <= high <= 1:
        raise InputError(
            "accuracy must be the interval (low, high) of the accuracy of all rows, fractions such "
            f"as (0.71, 0.78); got {accuracy!r:.80}."
        )
    return low, high


def accuracy_interval(method: Method, logits: object) -> tuple[float, float] | None:
    """Interval of the accuracy of an adapted method's predictions, at the method's ``level``.

    Args:
        method: What predicts. Rehearsal and Realign have such an interval, unless the class prior
            was given; ``None`` for other methods.
        logits: ``(n, k)`` of the target it was adapted to, or its :class:`Scores`.
    """
    z = method._check_target(logits)
    assert method.selection_ is not None
    found = method.selection_.details
    if "corrected_accuracy_low" in found:
        return found["corrected_accuracy_low"], found["corrected_accuracy_high"]
    # Where Realign leaves the predictions alone they are those of its Rehearsal.
    rehearsal = method.rehearsal_ if isinstance(method, Realign) else method
    if not isinstance(rehearsal, Rehearsal):
        return None
    estimator = Rehearsed.of(rehearsal)
    estimate = estimator._with_interval(estimator._estimate(z), len(z), rehearsal.level_)
    return estimate.low, estimate.high


def selective(
    confidence: object,
    target_accuracy: float = 0.95,
    *,
    accuracy: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Selective:
    """The lowest threshold at which the rows that are kept reach an accuracy, without labels.

    The expected accuracy of the kept rows is their mean confidence, so it is as good as the
    confidences are calibrated. Rows of equal confidence are kept together.

    The interval covers sampling noise, ``a (1 - a) / m`` for ``m`` kept rows, and with ``accuracy``
    the error of the confidences: their log-odds are shifted by 1.5 times the amount that moves the
    mean of all rows to either end of that interval.

    Args:
        confidence: ``(n,)`` calibrated probability that each prediction is correct.
        target_accuracy: Accuracy wanted among the kept rows, strictly between 0 and 1.
        accuracy: Interval of the accuracy of all rows, as :func:`accuracy_interval` gives it;
            ``None`` if the confidences are exact.
        level: Coverage of the interval, and of that of ``accuracy``.

    Raises:
        InputError: If confidences are missing, NaN or not within [0, 1], or ``accuracy`` is no
            interval.
    """
    goal = check_fraction(target_accuracy, name="target_accuracy")
    level = check_fraction(level, name="level")
    ends = check_interval(accuracy)
    c = falling(check_confidence(confidence))
    n_kept = _most_rows(c, goal)
    if not n_kept:
        return Selective(math.inf, 0.0, math.nan, math.nan, math.nan, level, goal, len(c), 0)
    kept = kept_rows(c, np.array([n_kept]), ends, level)
    return Selective(
        threshold=float(c[n_kept - 1]),
        coverage=n_kept / len(c),
        accuracy=float(kept.accuracy[0]),
        low=float(kept.low[0]),
        high=float(kept.high[0]),
        level=level,
        target_accuracy=goal,
        n=len(c),
        n_kept=n_kept,
    )
