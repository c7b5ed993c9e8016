"""Metrics: confidences (or probabilities) and the truth in, one number out.

``metrics.names()`` lists them, ``metrics.get("ece")`` gives the function. All are fractions, never
percent. A metric of your own is a function decorated with :func:`metric`, named as
``package.module:function`` or declared as an entry point of ``shiftcal.metrics``.

Next to them: :func:`bin_table`, the table behind ECE; :func:`bootstrap`, an interval for any
metric. :class:`shiftcal.ScoreStatistics` has them for data that does not fit in memory.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import (
    check_choice,
    check_confidence,
    check_correct,
    check_count,
    check_fraction,
    check_labels,
    check_probs,
    to_array,
)
from shiftcal.errors import InputError
from shiftcal.numerics.binning import (
    BinSums,
    area_under_risk,
    debiased_error,
    equal_size_bins,
    equal_width_bins,
    expected_error,
    largest_error,
    largest_residual,
    smooth_error,
    tie_groups,
)
from shiftcal.numerics.softmax import hits, log_losses, square_losses, top1_square_losses
from shiftcal.registry import METRICS
from shiftcal.types import Confidence, Correct, Interval, Labels, Probs

# --------------------------------------------------------------------------------------
# The one place where ``n_bins`` and ``binning`` are read and rows become bins.
# --------------------------------------------------------------------------------------

Binning = Literal["size", "width"]
MOST_BINS = 1_000_000


def check_binning(binning: object, *, name: str = "binning") -> Binning:
    """The kind of bins."""
    kind: Binning = check_choice(binning, ("size", "width"), name=name)
    return kind


def check_bins(n_bins: object, binning: object) -> tuple[int, Binning]:
    """The two options of every binned metric, checked."""
    return check_count(n_bins, name="n_bins", most=MOST_BINS), check_binning(binning)


def bins(
    confidence: Confidence,
    correct: Correct,
    n_bins: object,
    binning: object,
    *,
    whole_ties: bool = False,
) -> BinSums:
    """The sums over bins of checked arrays; ``whole_ties`` as in :func:`equal_size_bins`."""
    m, kind = check_bins(n_bins, binning)
    if kind == "width":
        return equal_width_bins(confidence, correct, m)
    return equal_size_bins(confidence, correct, m, whole_ties=whole_ties)


# --------------------------------------------------------------------------------------
# The contract of a metric: what it reads, in which direction it is good, and its range.
# --------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., float])


@dataclass(frozen=True)
class Facts:
    """What tables, plots and the bootstrap need to know about a metric.

    Attributes:
        reads: ``"top1"`` for ``(confidence, correct)`` (or probs and labels),
            ``"full"`` for ``(probs, labels)``.
        better: Whether a lower or a higher value is better.
        lower: Smallest possible value.
        upper: Largest possible value, ``inf`` if there is none.
        calibration: Whether it is a calibration error, which is 0 for a calibrated model but not on
            a finite sample of its predictions.
        rows: If the metric is the mean of one number per row: those numbers, from checked arrays.
            A resample then needs the numbers only, not the rows.
    """

    reads: Literal["top1", "full"]
    better: Literal["lower", "higher"] = "lower"
    lower: float = 0.0
    upper: float = 1.0
    calibration: bool = False
    rows: Callable[[Any, Any], NDArray[Any]] | None = None


@runtime_checkable
class Metric(Protocol):
    """A metric: a function of two arrays, with its facts, as :func:`metric` makes it."""

    facts: Facts

    def __call__(self, first: Any, second: Any, /, **options: Any) -> float:
        """The metric of confidence and correct, or of probs and labels."""


def metric(facts: Facts) -> Callable[[Function], Function]:
    """Make a metric of a function of checked arrays: calls are checked, ``facts`` attached.

    The function itself is ``metric.unchecked``, for arrays that are known to be good.
    """
    check = check_top1 if facts.reads == "top1" else check_full

    def attach(function: Function) -> Function:
        names = list(inspect.signature(function).parameters)[:2]

        @functools.wraps(function)
        def checked(*arrays: Any, **options: Any) -> float:
            arrays += tuple(options.pop(name) for name in names[len(arrays) :] if name in options)
            if len(arrays) != 2:
                return function(*arrays, **options)  # which says what is missing
            return function(*check(*arrays), **options)

        checked.facts, checked.unchecked = facts, function  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return attach


def unchecked(metric: Callable[..., float]) -> Callable[..., float]:
    """The metric of arrays that were checked already."""
    return getattr(metric, "unchecked", metric)


def facts_of(function: Callable[..., Any]) -> Facts:
    """The facts of a metric function."""
    return function.facts  # type: ignore[attr-defined]


def check_top1(confidence: object, correct: object) -> tuple[Confidence, Correct]:
    """The two arrays of a top-1 metric, checked; or those made of probs and labels."""
    first = to_array(confidence, name="confidence")
    if first.ndim == 2 and first.shape[1] > 1:
        y = to_array(correct, name="labels")
        if y.dtype == np.bool_:
            raise InputError(
                "rows of probabilities go with labels, class indices; got booleans. With correct "
                "predictions pass their confidence: probs.max(axis=1)."
            )
        p, labels = check_full(first, y)
        return p.max(axis=1), p.argmax(axis=1) == labels
    c = check_confidence(first)
    return c, check_correct(correct, n=len(c))


def check_full(probs: object, labels: object) -> tuple[Probs, Labels]:
    """The two arrays of a metric on whole rows of probabilities, checked."""
    p = check_probs(probs)
    return p, check_labels(labels, n=p.shape[0], k=p.shape[1])


# --------------------------------------------------------------------------------------
# The table behind a reliability diagram and behind ECE.
# --------------------------------------------------------------------------------------

_COLUMNS = ("lower", "upper", "count", "confidence", "accuracy", "gap")


@dataclass(frozen=True, eq=False)
class BinTable:
    """What is known of each bin, from the least confident to the most. All fractions.

    Attributes:
        lower: ``(m,)`` lower end: the least confidence in a bin of equal size, the edge (not
            itself inside, but for the first) of a bin of equal width.
        upper: ``(m,)`` upper end, inside the bin.
        count: ``(m,)`` rows.
        confidence: ``(m,)`` mean confidence, NaN in an empty bin.
        accuracy: ``(m,)`` fraction correct, NaN in an empty bin.
        gap: ``(m,)`` ``confidence - accuracy``: above zero where the model is overconfident.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    count: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    gap: NDArray[np.float64]

    @classmethod
    def from_sums(cls, sums: BinSums) -> BinTable:
        """The table of the sums over bins."""
        rows = np.where(sums.counts > 0, sums.counts, np.nan)
        confidence, accuracy = sums.confidence / rows, sums.correct / rows
        gap = confidence - accuracy
        return cls(sums.lower, sums.upper, sums.counts, confidence, accuracy, gap)

    @property
    def ece(self) -> float:
        """Expected calibration error: the mean of ``|gap|``, each bin weighing as its rows."""
        held = self.count > 0
        return float(np.average(np.abs(self.gap[held]), weights=self.count[held]))

    @property
    def mce(self) -> float:
        """Maximum calibration error: the largest ``|gap|``."""
        return float(np.nanmax(np.abs(self.gap)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Column name to list, ready for JSON: what an empty bin does not have is ``None``."""
        columns = {name: getattr(self, name).tolist() for name in _COLUMNS}
        return {
            name: [None if math.isnan(value) else value for value in column]
            for name, column in columns.items()
        }

    def __len__(self) -> int:
        return len(self.count)

    def __repr__(self) -> str:
        return f"<BinTable of {len(self)} bins, {self.count.sum():,} rows, ECE {self.ece:.4f}>"

    def __str__(self) -> str:
        head = f"{'bin':>4} {'lower':>7} {'upper':>7} {'count':>9} " + (
            f"{'confidence':>10} {'accuracy':>8} {'gap':>8}"
        )
        return "\n".join([head, *map(self._line, range(len(self)))])

    def _line(self, i: int) -> str:
        line = f"{i + 1:>4} {self.lower[i]:7.4f} {self.upper[i]:7.4f} {self.count[i]:>9,} "
        if self.count[i] == 0:
            return line + f"{'-':>10} {'-':>8} {'-':>8}"
        return line + f"{self.confidence[i]:10.4f} {self.accuracy[i]:8.4f} {self.gap[i]:+8.4f}"


def bin_table(
    confidence: object, correct: object, *, n_bins: int = 15, binning: Binning = "size"
) -> BinTable:
    """Edges, counts, mean confidence, accuracy and gap of every bin.

    Its ``ece`` and ``mce`` are those of :func:`ece` and :func:`mce` with
    the same options.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins; bins of equal size are never more than the rows.
        binning: ``"size"`` or ``"width"``, as in :func:`ece`.

    Raises:
        InputError: If the arrays cannot be used.
    """
    c, r = check_top1(confidence, correct)
    return BinTable.from_sums(bins(c, r, n_bins, binning))


# --------------------------------------------------------------------------------------
# Bootstrap draws of a statistic and the ends of the interval they give.
# --------------------------------------------------------------------------------------


def draws(
    statistic: Callable[[NDArray[np.int64]], float], *, n: int, n_resamples: int, seed: int
) -> NDArray[np.float64]:
    """The statistic of ``n_resamples`` samples of ``n`` rows drawn with replacement.

    Args:
        statistic: Takes the indices ``(n,)`` of the rows drawn.
        n: Number of rows.
        n_resamples: Number of draws.
        seed: Fixes them all.
    """
    rng: Any = np.random.default_rng(seed)
    return np.array([statistic(rng.integers(0, n, size=n)) for _ in range(n_resamples)])


def reflected_interval(
    value: float, draws: NDArray[np.float64], *, level: float, lower: float, upper: float
) -> tuple[float, float]:
    """``[2v - q_hi, 2v - q_lo]``, cut to the metric's range and widened to hold ``v``.

    A draw errs from ``v`` as ``v`` errs from the truth, bias included, so the quantiles ``q`` of
    the draws are reflected at ``v``: a metric that comes out too high on a finite sample gets an
    interval that lies lower, where the percentile interval would move up once more.

    Args:
        value: The statistic ``v`` of the sample itself.
        draws: ``(b,)`` its bootstrap draws.
        level: Coverage aimed at.
        lower: Smallest value possible.
        upper: Largest value possible.
    """
    q_low, q_high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    low = min(max(2 * value - float(q_high), lower), value)
    high = max(min(2 * value - float(q_low), upper), value)
    return low, high


def cautious_interval(
    value: float,
    draws: NDArray[np.float64],
    calibrated: Callable[[], NDArray[np.float64]],
    *,
    level: float,
    upper: float,
) -> tuple[float, float]:
    """The reflected interval of a calibration error, each end moved out where its bias is in doubt.

    Draws of a small error lie above ``v`` by another bias than ``v`` has: a larger one where ``v``
    hardly errs upwards, a smaller one where it is noise for the most part. So with the median
    ``m`` of the draws the upper end is at least ``v + max(q_hi - m, m - q_lo)``, as if ``v`` had
    no bias, and the lower end is at most what errors that a calibrated model shows leave of ``v``:
    nothing unless ``v`` is above their :func:`rank_limit`; then ``v - limit``, which by the
    triangle inequality is below the truth, or if more ``sqrt((v - (q_hi - m))^2 - mean^2)`` with
    their mean, since an error and noise add up in squares or nearly. Where the error is plain,
    both ends are the reflected ones.

    Args:
        value: The error ``v`` of the sample itself.
        draws: ``(b,)`` its bootstrap draws.
        calibrated: Gives ``(b,)`` errors of a calibrated model; called if they matter.
        level: Coverage aimed at.
        upper: Largest value possible; the smallest is 0.
    """
    low, high = reflected_interval(value, draws, level=level, lower=0.0, upper=upper)
    tail = (1 - level) / 2
    q_low, median, q_high = np.quantile(draws, [tail, 0.5, 1 - tail]).tolist()
    high = max(high, min(value + max(q_high - median, median - q_low), upper))
    if low > 0:
        noise = calibrated()
        limit = rank_limit(noise, level=level)
        squares = max(value - (q_high - median), 0.0) ** 2 - float(noise.mean()) ** 2
        low = min(low, max(value - limit, math.sqrt(max(squares, 0.0)))) if value > limit else 0.0
    return low, high


def rank_limit(draws: NDArray[np.float64], *, level: float) -> float:
    """What a value must lie above to be too large to be one more of these draws.

    With ``b`` draws a value ``v`` is above it if ``(1 + #{draw >= v}) / (b + 1)``, the rank test's
    p-value, is at most ``(1 - level) / 2``. Of too few draws no value is: the limit is infinite.
    """
    allowed = (1 - level) / 2 * (len(draws) + 1)
    exceeded = int(allowed + 1e-9)  # rounding must not cost a whole rank
    return float(np.sort(draws)[-exceeded]) if exceeded else math.inf


# --------------------------------------------------------------------------------------
# Bootstrap intervals for any metric.
# --------------------------------------------------------------------------------------


def bootstrap(
    metric: Callable[..., float],
    first: object,
    second: object,
    *,
    n_resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> Interval:
    """A metric with its bootstrap interval: ``bootstrap(ece, confidence, correct)``.

    Rows are drawn with replacement ``n_resamples`` times. The interval is the reflected (basic)
    one, ``[2v - q_hi, 2v - q_lo]`` for the value ``v`` and the quantiles ``q`` of the draws. A
    binned calibration error is too high on a finite sample, and a resample is too high once more;
    reflection takes that off where percentiles would count it twice. What falls outside the
    metric's range is cut, and the interval always holds ``v``.

    How much too high is in doubt where a calibration error is small, so its ends err to the side
    of caution. The upper end is at least ``v`` plus the spread of the draws, no bias taken off.
    The lower end heeds what a calibrated model would show: truths are drawn as the predictions
    say, ``n_resamples`` times, and it is 0 unless ``v`` is above those draws by a rank test,
    ``(1 + #{draw >= v}) / (n_resamples + 1) <= (1 - level) / 2``. So a lower end above 0 is
    evidence of miscalibration at the level asked for; at 0.95 that takes 39 draws or more.
    :func:`debiased_ece` says how much of a value is error.

    Args:
        metric: A metric of this package.
        first: Its first array: confidence ``(n,)`` or probs ``(n, k)``.
        second: Its second array: correct or labels ``(n,)``.
        n_resamples: Number of draws.
        level: Coverage aimed at, strictly between 0 and 1.
        seed: Fixes the draws: the same seed gives the same interval.
        **options: Passed on to the metric, such as ``n_bins``.

    Raises:
        InputError: If the arrays or options cannot be used.
    """
    facts = getattr(metric, "facts", None)
    if not isinstance(facts, Facts):
        raise InputError(
            f"metric must be one of shiftcal's metric functions, such as shiftcal.ece; "
            f"got {metric!r}. A metric known by name is shiftcal.metrics.get(name)."
        )
    check_count(n_resamples, name="n_resamples", least=2)
    check_count(seed, name="seed", least=0)
    check_fraction(level, name="level")
    a, b = check_top1(first, second) if facts.reads == "top1" else check_full(first, second)
    return bootstrap_checked(
        metric, a, b, n_resamples=n_resamples, level=level, seed=seed, **options
    )


def bootstrap_checked(
    metric: Callable[..., float],
    a: Any,
    b: Any,
    *,
    n_resamples: int,
    level: float,
    seed: int,
    **options: Any,
) -> Interval:
    """The same for arrays and settings that were checked already."""
    facts = facts_of(metric)
    metric = unchecked(metric)
    value = metric(a, b, **options)
    losses = facts.rows(a, b) if facts.rows is not None and not options else None

    def of_rows(rows: NDArray[np.int64]) -> float:
        if losses is None:  # or an option that may change what a row counts
            return metric(a[rows], b[rows], **options)
        return float(losses[rows].mean())

    def if_calibrated() -> NDArray[np.float64]:
        """The metric of the same predictions with truths drawn as they say, many times over."""
        rng = np.random.default_rng([seed, 1])
        cumulative = a.cumsum(axis=1) if a.ndim == 2 else None

        def truth() -> NDArray[Any]:
            if cumulative is None:
                return rng.random(len(a)) < a
            labels = (cumulative < rng.random((len(a), 1))).sum(axis=1)
            return np.minimum(labels, a.shape[1] - 1)

        return np.array([metric(a, truth(), **options) for _ in range(n_resamples)])

    drawn = draws(of_rows, n=len(b), n_resamples=n_resamples, seed=seed)
    if facts.calibration:
        ends = cautious_interval(value, drawn, if_calibrated, level=level, upper=facts.upper)
    else:
        ends = reflected_interval(value, drawn, level=level, lower=facts.lower, upper=facts.upper)
    return Interval(value, *ends, level=float(level))


# --------------------------------------------------------------------------------------
# The metrics.
# --------------------------------------------------------------------------------------


@metric(Facts(reads="full", better="higher", rows=hits))
def accuracy(probs: Any, labels: Any) -> float:
    """Accuracy: the fraction of rows whose largest probability is that of the true class.

    Of several equal largest ones the first is the prediction, as in ``argmax``.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices.
    """
    return float(hits(probs, labels).mean())


@metric(Facts(reads="top1"))
def aurc(confidence: Any, correct: Any) -> float:
    """Area under the risk-coverage curve: the mean error rate over all coverages.

    ``1/n sum_{i=1}^n (errors among the i most confident) / i``. It judges how well confidence
    ranks the rows, not whether it is calibrated: any increasing change of the confidences leaves
    it as it is. Rows of equal confidence count with the mean over all their orders.

    Args:
        confidence: ``(n,)`` any confidence in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    return area_under_risk(tie_groups(confidence, correct))


@metric(Facts(reads="full", upper=2.0, rows=square_losses))
def brier(probs: Any, labels: Any) -> float:
    """Brier score: the mean of ``sum_k (p_k - [y = k])^2``, from 0 to 2.

    The sum runs over all classes (Brier, 1950); with two classes it is twice the binary score.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices.
    """
    return float(square_losses(probs, labels).mean())


@metric(Facts(reads="full", calibration=True))
def classwise_ece(probs: Any, labels: Any, *, n_bins: int = 15, binning: Binning = "size") -> float:
    """Class-wise expected calibration error: ECE of each class's column, averaged over classes.

    ``1/k sum_j ECE(probs[:, j], labels == j)``: every column is judged as a forecast of its own
    class, whether or not that class was predicted. Most columns are near zero most of the time,
    so it is much smaller than the top-1 error when there are many classes.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices. Classes that never occur count like the others.
        n_bins: Number of bins a class.
        binning: ``"size"`` or ``"width"``, as in :func:`ece`.
    """
    columns = np.ascontiguousarray(probs.T)
    return float(
        np.mean(
            [expected_error(bins(c, labels == j, n_bins, binning)) for j, c in enumerate(columns)]
        )
    )


@metric(Facts(reads="top1", calibration=True))
def debiased_ece(
    confidence: Any, correct: Any, *, n_bins: int = 15, binning: Binning = "size"
) -> float:
    """Root mean square calibration error with the noise of finite bins subtracted (Kumar, 2019).

    ``sqrt(max(0, sum_b n_b/n [(conf_b - acc_b)^2 - acc_b (1 - acc_b) / (n_b - 1)]))``. The second
    term is the variance of ``acc_b``, which the plug-in error counts as miscalibration; without it
    the square is unbiased for the binned predictor. It is a root mean *square* over bins, so it is
    not a corrected :func:`ece`: on large samples it is the larger of the two.
    Bins of fewer than two rows add nothing.

    Rows of equal confidence stay in one bin, since the variance is that of a whole bin: a cut
    between bins of equal size that falls among them moves to their upper end, as in the authors'
    code. With many ties there are fewer bins than asked for.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins.
        binning: ``"size"`` or ``"width"``, as in :func:`ece` but for the ties.
    """
    return debiased_error(bins(confidence, correct, n_bins, binning, whole_ties=True))


@metric(Facts(reads="top1", calibration=True))
def ece(confidence: Any, correct: Any, *, n_bins: int = 15, binning: Binning = "size") -> float:
    """Expected calibration error: how far confidence and accuracy differ, on average over bins.

    ``ECE = sum_b n_b/n |accuracy of bin b - mean confidence of bin b|``, with the bins formed on
    the confidence that is judged. On a finite sample it is too high: a perfectly calibrated
    predictor gets about ``0.8 mean(sqrt(c (1 - c))) sqrt(n_bins / n)``, 0.011 for 5,000 rows of
    mean confidence 0.91. :func:`shiftcal.metrics.bootstrap` gives an interval that allows for it.
    With ``n_bins=1`` it is ``|mean confidence - accuracy|``.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins; with fewer rows than that, one bin a row.
        binning: ``"size"``: bins of equally many rows (sizes differ by one at the most); rows of
            equal confidence share their correctness evenly, so the order of rows never matters.
            ``"width"``: bins ``(i/m, (i+1)/m]`` of equal width, the first holding 0 as well.

    Example:
        >>> round(ece([0.6, 0.7, 0.8, 0.9], [True, False, True, True], n_bins=2), 4)
        0.15
    """
    return expected_error(bins(confidence, correct, n_bins, binning))


@metric(Facts(reads="top1", calibration=True))
def ks_error(confidence: Any, correct: Any) -> float:
    """Kolmogorov-Smirnov calibration error: the largest gap of two cumulative sums.

    ``max_k |sum_{i <= k} (c_i - r_i)| / n`` with the rows in order of confidence (Gupta et al.,
    2021). It has no bins. Rows of equal confidence are taken together, so their order never
    matters. It is never below ``|mean confidence - accuracy|``.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    return largest_residual(tie_groups(confidence, correct))


@metric(Facts(reads="top1", calibration=True))
def mce(confidence: Any, correct: Any, *, n_bins: int = 15, binning: Binning = "size") -> float:
    """Maximum calibration error: the largest gap between confidence and accuracy of any bin.

    ``MCE = max_b |accuracy of bin b - mean confidence of bin b|`` over bins that hold a row. With
    ``binning="width"`` a bin may hold very few rows and decide alone; bins of equal size do not.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
        n_bins: Number of bins.
        binning: ``"size"`` or ``"width"``, as in :func:`ece`.
    """
    return largest_error(bins(confidence, correct, n_bins, binning))


@metric(Facts(reads="full", upper=float("inf"), rows=log_losses))
def nll(probs: Any, labels: Any) -> float:
    """Negative log-likelihood: the mean of ``-log p`` of the true class, in nats.

    A probability below 1.2e-38 (the smallest normal float32) counts as that, so that one zero does
    not make the mean infinite: no row costs more than 87.34.

    Args:
        probs: ``(n, k)`` probabilities.
        labels: ``(n,)`` class indices.
    """
    return float(log_losses(probs, labels).mean())


@metric(Facts(reads="top1", calibration=True))
def smooth_ece(confidence: Any, correct: Any) -> float:
    """Smooth calibration error: ECE with a kernel in place of bins (Błasiok and Nakkiran, 2023).

    The residuals ``c - r`` are smoothed along the confidence with a Gaussian of bandwidth ``σ``
    reflected at 0 and 1; ``smECE_σ = ∫ |1/n sum_i K_σ(t, c_i) (c_i - r_i)| dt``, and the error is
    the one ``σ`` for which ``smECE_σ = σ``. There is nothing to choose, and a small change of the
    confidences changes it little, unlike any error made of bins.

    Computed on a grid of at least 64 points a bandwidth; relative error below 0.001. The authors'
    package, relplot, halves the mass at 0 and 1, so it differs where many confidences are near 1:
    on a real network it says 0.0768 where the definition gives 0.0534.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    return smooth_error(
        confidence, np.subtract(confidence, correct, dtype=np.float64) / len(confidence)
    )


@metric(Facts(reads="top1", rows=top1_square_losses))
def top1_brier(confidence: Any, correct: Any) -> float:
    """Brier score of the predicted class: the mean of ``(c - r)^2``, from 0 to 1.

    Args:
        confidence: ``(n,)`` probability of the predicted class, in [0, 1].
        correct: ``(n,)`` whether the predicted class was right.
    """
    return float(top1_square_losses(confidence, correct).mean())


names = METRICS.names
get = METRICS.get

__all__ = ["BinTable", "Facts", "Metric", "bin_table", "bootstrap", "get", "metric", "names"]
__all__ += ["accuracy", "aurc", "brier", "classwise_ece", "debiased_ece", "ece", "ks_error", "mce"]
__all__ += ["nll", "smooth_ece", "top1_brier"]
