"""Metrics of a classifier on a target without labels, expected under calibrated probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_count, check_fraction, check_probs
from shiftcal.errors import InputError
from shiftcal.estimates import Rehearsed
from shiftcal.methods import Method
from shiftcal.methods.class_bias import log_odds
from shiftcal.methods.realign import Realign
from shiftcal.methods.rehearsal import Rehearsal
from shiftcal.numerics.blocks import one_blas_thread
from shiftcal.numerics.softmax import softmax
from shiftcal.types import Flag, Interval, Labels, Probs

Array = NDArray[np.float64]

# Targets drawn for the intervals, of no more numbers than this, unless that is too few rows.
_DRAWS, _MOST, _LEAST_ROWS = 100, 500_000, 2000
# Errors of a calibration, chosen on development data: standard deviations of a bias per class
# where Realign's gate believes in the calibration set's class prior, where it does not, and for
# methods that leave biases alone; and of the logarithm of a scale.
_SAME_PRIOR, _MOVED_PRIOR, _UNCORRECTED, _SCALE = 0.4, 1.5, 1.0, 0.15
_TOTALS = ("accuracy", "macro_f1", "auroc", "average_precision")
_BY_CLASS = ("precision", "recall", "f1", "prior")
_CONFUSION = ("confusion", "confusion_low", "confusion_high")

_SAMPLING_ONLY = Flag(
    "no-shift-error",
    "the intervals cover sampling only, not the error of the probabilities under shift. Use a "
    "method that learns from shifted sets, such as Realign.",
)


@dataclass(frozen=True, eq=False)
class Performance:
    """Expected metrics of a model's own predictions on an unlabelled target.

    Values are those of scikit-learn, with a row of class ``j`` with weight ``p_j``. Of two classes,
    average precision is that of the second; of more it is the mean over classes, as AUROC is (one
    class against the rest). A class that is neither expected nor predicted has no part in a mean.

    Attributes:
        accuracy: Share of correct predictions.
        macro_f1: Mean of the F1 of every class.
        auroc: Area under the ROC curve of the model's outputs.
        average_precision: Average precision of the model's outputs.
        precision: Of every class; 0 if it is never predicted.
        recall: Of every class; 0 if there are no rows of it.
        f1: Of every class.
        prior: Share of rows of every class.
        confusion: ``(k, k)`` expected rows of the true class (column) by predicted class (row).
        confusion_low: Lower ends of the intervals.
        confusion_high: Upper ends.
        classes: Names of the classes, if known.
        n_target: Rows of the target.
        level: Coverage aimed at by the intervals.
        flags: Reasons not to trust the estimates.
    """

    accuracy: Interval
    macro_f1: Interval
    auroc: Interval
    average_precision: Interval
    precision: tuple[Interval, ...]
    recall: tuple[Interval, ...]
    f1: tuple[Interval, ...]
    prior: tuple[Interval, ...]
    confusion: Array
    confusion_low: Array
    confusion_high: Array
    classes: tuple[str, ...] | None
    n_target: int
    level: float
    flags: tuple[Flag, ...] = ()

    @classmethod
    def of(cls, method: Method, logits: object, *, level: float = 0.95, seed: int = 0) -> Self:
        """The metrics that an adapted method expects.

        The model's own predictions are correct with the method's ``confidence``; other classes,
        AUROC and average precision are those of ``predict_proba``. :class:`Realign` is best here
        by far: methods that keep the model's class biases expect the wrong confusions.

        An interval is that of draws of the rows, of their labels, of the mean confidence in the
        method's own interval, of a bias per class, and of a scale. Other methods than
        :class:`Realign` and :class:`Rehearsal` have no such interval.

        Args:
            method: Fitted, and adapted to this target.
            logits: ``(n, k)`` of the target, as for ``adapt``.
            level: Coverage of the intervals, strictly between 0 and 1.
            seed: Of the draws.
        """
        level = check_fraction(level, name="level")
        z = method._check_target(logits)
        outputs, probs = softmax(z), method._apply(z)
        predicted, rows = outputs.argmax(axis=1), np.arange(len(z))
        own, before = method._confidence(z), probs[rows, predicted]
        kept = probs * ((1 - own) / np.maximum(1 - before, 1e-12))[:, None]
        kept[rows, predicted] = own
        kept /= kept.sum(axis=1, keepdims=True)
        assert method.selection_ is not None
        details, errors = method.selection_.details, None
        rehearsal = method if isinstance(method, Rehearsal) else getattr(method, "rehearsal_", None)
        if "estimated_accuracy_low" in details and isinstance(method, Realign):
            ends = (details["estimated_accuracy_low"], details["estimated_accuracy_high"])
            errors = (*ends, method.level_)
        elif rehearsal is not None and len(rehearsal.ladder_) > 1:
            rehearsed = Rehearsed.of(rehearsal)
            found = rehearsed._with_interval(rehearsed._estimate(z), len(z), level)
            errors = (found.low, found.high, level)
        bias = _UNCORRECTED
        if isinstance(method, Realign):
            same = details.get("weight_same_prior", 1.0)
            bias = same * _SAME_PRIOR + (1 - same) * _MOVED_PRIOR
        noise = _Noise() if errors is None else _Noise(bias, _SCALE, errors)
        flags = method.selection_.flags + (() if errors is not None else (_SAMPLING_ONLY,))
        return cls._made(kept, probs, outputs, noise, level, seed, method.class_names_, flags)

    @classmethod
    def expected(
        cls, probs: object, outputs: object = None, *, level: float = 0.95, seed: int = 0
    ) -> Self:
        """The metrics expected under calibrated probabilities from elsewhere.

        With the true classes as rows of zeros and a one they are the metrics themselves. Intervals
        cover the draw of rows and labels, no error of the probabilities.

        Args:
            probs: ``(n, k)`` calibrated probabilities.
            outputs: ``(n, k)`` probabilities of the model that is judged; default: ``probs``.
            level: Coverage of the intervals, strictly between 0 and 1.
            seed: Of the draws.
        """
        level = check_fraction(level, name="level")
        p = check_probs(probs)
        q = p if outputs is None else check_probs(outputs, k=p.shape[1])
        if len(p) != len(q):
            raise InputError(
                f"probs and outputs must have the same rows; got {len(p)} and {len(q)}."
            )
        return cls._made(p, p, q, _Noise(), level, seed, None, (_SAMPLING_ONLY,))

    @classmethod
    def _made(
        cls,
        kept: Probs,
        probs: Probs,
        outputs: Probs,
        noise: _Noise,
        level: float,
        seed: int,
        classes: tuple[str, ...] | None,
        flags: tuple[Flag, ...],
    ) -> Self:
        n, k = kept.shape
        rng = np.random.default_rng(check_count(seed, name="seed", least=0))
        ranking, every = _Ranking(outputs), np.ones(n)
        predicted = outputs.argmax(axis=1)
        value = _measure(kept, every, predicted, ranking)
        if probs is not kept:
            value[2:4] = ranking.areas(probs, every)
        if (most := max(_MOST // k, _LEAST_ROWS)) < n:
            rows = np.linspace(0, n - 1, most).astype(np.intp)
            kept, predicted, ranking = kept[rows], predicted[rows], _Ranking(outputs[rows])
        total, squares = np.zeros_like(value), np.zeros_like(value)
        with one_blas_thread():
            for drawn in _drawn(kept, predicted, ranking, noise, rng):
                angle = _angle(drawn)
                total, squares = total + angle, squares + angle**2
        variance = (squares - total**2 / _DRAWS) / (_DRAWS - 1)
        half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(np.maximum(variance, 0))
        low, high = (
            np.sin(np.clip(_angle(value) + side, 0, np.pi / 2)) ** 2 for side in (-half, half)
        )
        # A metric that a draw leaves undefined can be anything.
        low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
        ends = np.stack([value, np.minimum(low, value), np.maximum(high, value)])
        intervals = [Interval(v, a, b, level) for v, a, b in ends[:, : 4 + 4 * k].T.tolist()]
        found: dict[str, Any] = dict(zip(_TOTALS, intervals, strict=False))
        for i, name in enumerate(_BY_CLASS):
            found[name] = tuple(intervals[4 + i * k : 4 + (i + 1) * k])
        matrices = n * ends[:, 4 + 4 * k :].reshape(3, k, k)
        found |= dict(zip(_CONFUSION, matrices, strict=True))
        return cls(**found, classes=classes, n_target=n, level=level, flags=flags)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        found = asdict(self)
        for name in _CONFUSION:
            found[name] = found[name].tolist()
        return found

    def __str__(self) -> str:
        found = {name: getattr(self, name) for name in _TOTALS}
        return "\n".join(f"{name:<18} {interval}" for name, interval in found.items())


class _Noise(NamedTuple):
    """Errors of a calibration that are drawn.

    Attributes:
        bias: Standard deviation of the log-odds of a class.
        scale: Of the logarithm of a factor of all logarithms of probabilities.
        accuracy: Interval of the accuracy and its level.
    """

    bias: float = 0.0
    scale: float = 0.0
    accuracy: tuple[float, float, float] | None = None


def _drawn(
    probs: Array, predicted: Labels, ranking: _Ranking, noise: _Noise, rng: np.random.Generator
) -> Iterator[Array]:
    """The metrics of targets drawn from probabilities that are off."""
    n, k = probs.shape
    rows, logs = np.arange(n), np.log(np.maximum(probs, 1e-12))
    own = probs[rows, predicted]
    mean = float(own.mean())
    shifts = (0.0, 0.0)
    if noise.accuracy is not None:
        # To first order, what moves the log-odds of the mean by one standard deviation.
        *ends, level = noise.accuracy
        step = mean * (1 - mean) / max(float((own * (1 - own)).mean()), 1e-6)
        z = NormalDist().inv_cdf((1 + level) / 2)
        low, high = (step * float(abs(log_odds(end) - log_odds(mean))) / z for end in ends)
        shifts = (low, high)
    for _ in range(_DRAWS):
        moved = logs * math.exp(noise.scale * rng.standard_normal())
        moved += noise.bias * rng.standard_normal(k)
        side = rng.standard_normal()
        moved[rows, predicted] += side * shifts[int(side > 0)]
        labels = (softmax(moved).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1, dtype=np.intp)
        weights = np.asarray(rng.poisson(1.0, size=n), dtype=np.float64)
        positive = np.zeros((n, k))
        positive[rows, np.minimum(labels, k - 1)] = weights
        yield _measure(positive, weights, predicted, ranking)


def _angle(shares: Array) -> Array:
    """On this scale a share varies by sampling as much wherever it lies."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(shares, 0, 1))))


class _Ranking:
    """Rows in the order of each class's scores ``(n, k)``; of two classes, of the second alone."""

    def __init__(self, scores: Array) -> None:
        self._columns = slice(scores.shape[1] == 2, None)
        s = -scores[:, self._columns]
        self._order = s.argsort(axis=0)
        s = np.take_along_axis(s, self._order, 0)
        new = np.ones((len(s) + 1, s.shape[1]), np.bool_)
        new[1:-1] = s[1:] != s[:-1]
        at = np.arange(len(s))[:, None]
        # First and last row of those with the same score.
        self._first = np.maximum.accumulate(np.where(new[:-1], at, 0), axis=0)
        last = np.where(new[1:], at, len(s))
        self._last = np.minimum.accumulate(last[::-1], axis=0)[::-1]

    def areas(self, positive: Array, weights: Array) -> tuple[float, float]:
        """AUROC and average precision, means over the classes that have them.

        Args:
            positive: ``(n, k)`` how much of a row is of each class.
            weights: ``(n,)`` how much it weighs in all.
        """
        p = np.take_along_axis(positive[:, self._columns], self._order, 0)
        w = weights[self._order]
        above, seen = np.cumsum(p, axis=0), np.cumsum(w, axis=0)
        through = np.take_along_axis(above, self._last, 0)
        before = np.take_along_axis(above - p, self._first, 0)
        precision = _ratio(through, np.take_along_axis(seen, self._last, 0))
        of_class = above[-1]
        pairs = of_class * (seen[-1] - of_class)
        auroc = _ratio(((w - p) * (through + before)).sum(axis=0), 2 * pairs)
        average = _ratio((p * precision).sum(axis=0), of_class)
        return _mean(auroc[pairs > 0]), _mean(average[of_class > 0])


def _measure(positive: Array, weights: Array, predicted: Labels, ranking: _Ranking) -> Array:
    """All metrics in a vector: four totals, four of every class, the confusion matrix in shares."""
    k = positive.shape[1]
    columns = [np.bincount(predicted, column, k) for column in positive.T]
    confusion = np.stack(columns, axis=1) / max(weights.sum(), 1.0)
    hits, share, prior = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    f1 = _ratio(2 * hits, share + prior)
    totals = [hits.sum(), _mean(f1[share + prior > 0]), *ranking.areas(positive, weights)]
    by_class = [_ratio(hits, share), _ratio(hits, prior), f1, prior]
    return np.concatenate([totals, *by_class, confusion.ravel()])


def _ratio(over: Array, under: Array) -> Array:
    return np.divide(over, under, out=np.zeros_like(over), where=under > 0)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else math.nan
