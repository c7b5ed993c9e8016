"""Calibration maps: labelled logits in, a fitted map from logits to probabilities out.

``maps.names()`` lists them, ``maps.get("temperature")`` and ``maps.Temperature`` give the class. A
map of your own is a subclass of :class:`Map`, named as ``package.module:Class`` or declared as an
entry point of ``shiftcal.maps``.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from shiftcal import persistence as _persistence
from shiftcal.checks import (
    check_count,
    check_labels,
    check_not_negative,
    check_range,
    check_scores,
    check_weights,
)
from shiftcal.errors import FitWarning
from shiftcal.numerics.fits import (
    beta_log_odds,
    distinct,
    equal_weight_bins,
    linear_softmax,
    rows_with_top1,
    smoothed_means,
    solve_beta,
    solve_linear,
    solve_mixture,
    top1_log_odds,
)
from shiftcal.numerics.softmax import keep_top, log_softmax, softmax
from shiftcal.numerics.temperature import (
    FitStatus,
    log_relative_entropy,
    solve_brier_temperature,
    solve_power,
    solve_temperature,
)
from shiftcal.persistence import Estimator
from shiftcal.registry import MAPS
from shiftcal.types import Labels, Logits, Probs, Weights


class Map(Estimator, ABC):
    """A supervised calibration map: fitted on labelled logits, applied row by row.

    A new map is a final subclass with a ``name``, a keyword-only ``__init__`` that takes at least
    ``input``, with ``_fit`` and ``_apply``, and with every learnt attribute annotated in the class
    body. Guarantees every map gives, checked by the contract tests: rows
    sum to one; a constant added to a row of logits changes nothing; the order and number of rows
    predicted together change nothing; a weight of two equals a row given twice.

    Attributes:
        preserves_accuracy: Whether the predicted class is the model's, for every row.
        is_temperature: Whether it is softmax of the logits over ``temperature_``, nothing more.
        status_: How the fit ended; anything but converged is also a :class:`FitWarning`.
        n_classes_: Number of columns of the logits it was fitted on.
    """

    kind: ClassVar[str] = "map"
    preserves_accuracy: ClassVar[bool]
    is_temperature: ClassVar[bool] = False

    input: str
    status_: FitStatus
    n_classes_: int

    @final
    def fit(self, logits: object, labels: object, sample_weight: object = None) -> Self:
        """Fit on labelled logits.

        Args:
            logits: ``(n, k)``, or probabilities if ``input="probabilities"``.
            labels: ``(n,)`` class indices. Classes that never occur are allowed.
            sample_weight: ``(n,)`` non-negative weights.

        Raises:
            InputError: If the arrays cannot be used.
            FitError: If no map of this kind can be fitted to them.
        """
        z = check_scores(logits, input=self.input)
        n, k = z.shape
        y = check_labels(labels, n=n, k=k)
        w = check_weights(sample_weight, n=n)
        self.fit_checked(z, y, w)
        if not self.status_.converged:
            warnings.warn(self.status_.message, FitWarning, stacklevel=2)
        return self

    @final
    def fit_checked(self, logits: Logits, labels: Labels, weights: Weights | None) -> Self:
        """Fit on arrays that were checked already; says nothing, look at ``status_``."""
        self.__dict__.pop("n_classes_", None)  # a failed fit leaves it unfitted, not half fitted
        self.status_ = FitStatus("converged")
        self._fit(logits, labels, weights)
        self.n_classes_ = int(logits.shape[1])
        return self

    @final
    def predict_proba(self, logits: object) -> Probs:
        """Calibrated probabilities ``(n, k)``, float64, row by row."""
        self._require_fitted()
        z = check_scores(logits, input=self.input, k=self.n_classes_)
        return self.apply_checked(z)

    @final
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map to versioned JSON; ``shiftcal.load`` reads it back."""
        self._require_fitted()
        _persistence.save(self, path)

    @final
    def apply_checked(self, logits: Logits) -> Probs:
        """Probabilities for logits that were checked already."""
        return self._apply(logits)

    @abstractmethod
    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        """Learn from checked arrays; set every declared attribute, and ``status_`` if not well."""

    @abstractmethod
    def _apply(self, logits: Logits) -> Probs:
        """Probabilities for checked logits."""


names = MAPS.names
get = MAPS.get

__all__ = ["FitStatus", "Map", "get", "names"]


class InRange(Map):
    """A map of temperatures within a range."""

    preserves_accuracy: ClassVar[bool] = True

    def __init__(
        self, *, t_range: tuple[float, float] = (0.01, 100.0), input: str = "logits"
    ) -> None:
        self.t_range = t_range
        self.input = input


class OneTemperature(InRange):
    """``softmax(z / T)``; a subclass says of which T."""

    is_temperature: ClassVar[bool] = True
    _solve: ClassVar[Callable[..., Any]]

    temperature_: float

    @final
    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        t_range = check_range(self.t_range, name="t_range")
        solution = self._solve(logits, labels, weights, t_range=t_range)
        self.temperature_ = solution.temperature
        self.status_ = solution.status

    @final
    def _apply(self, logits: Logits) -> Probs:
        return softmax(logits, self.temperature_)


class Odir(Map):
    """``softmax(W x + b)`` with off-diagonal and intercept regularisation (ODIR).

    :class:`~shiftcal.maps.Matrix` explains the settings. Kull et al. (2019) divide the sum
    over the weights by ``k (k - 1)`` and that over the intercepts by ``k``; then the penalty of a
    weight fades as classes are added, and a factor that suits 10 classes leaves 100 over-fitted.

    A subclass says what ``x`` is.
    """

    preserves_accuracy: ClassVar[bool] = False

    weight_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def __init__(
        self,
        *,
        off_diagonal: float = 1.0,
        intercept: float = 0.01,
        ridge: float = 0.003,
        max_iter: int = 1000,
        input: str = "logits",
    ) -> None:
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.ridge = ridge
        self.max_iter = max_iter
        self.input = input

    @final
    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        off_diagonal = check_not_negative(self.off_diagonal, name="off_diagonal")
        intercept = check_not_negative(self.intercept, name="intercept")
        ridge = check_not_negative(self.ridge, name="ridge")
        k = logits.shape[1]
        self.weight_, self.intercept_, self.status_ = solve_linear(
            self._features(logits),
            labels,
            weights,
            weight_penalty=np.where(np.eye(k, dtype=bool), ridge, off_diagonal + ridge),
            intercept_penalty=intercept + ridge,
            max_iter=check_count(self.max_iter, name="max_iter"),
        )

    @final
    def _apply(self, logits: Logits) -> Probs:
        return linear_softmax(self._features(logits), self.weight_, self.intercept_)

    @staticmethod
    @abstractmethod
    def _features(logits: Logits) -> NDArray[np.float64]:
        """What ``W`` multiplies, ``(n, k)``, the same for logits that differ by a row constant."""


Array = NDArray[np.float64]


class Top1(Map):
    """A map ``c -> c'`` of the confidence ``c`` of the predicted class, made into whole rows.

    The predicted class (the first largest logit) gets ``c'``; the others share ``1 - c'`` in
    proportion to the model's probabilities, none coming nearer to ``c'`` than ``c' * 1e-6``. So
    the predicted class never changes, and the largest probability of a row is ``c'``, except
    where ``c'`` is below about ``1 / k``, which the largest of ``k`` probabilities cannot be: it
    is raised to ``1 / (1 + (k - 1) * (1 - 1e-6))``.

    A subclass learns the map from log-odds ``log(c / (1 - c))``, which unlike ``c`` keep their
    digits when ``c`` is nearly one.
    """

    preserves_accuracy: ClassVar[bool] = True

    @final
    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        log_odds = top1_log_odds(logits)
        correct = (logits.argmax(axis=1) == labels).astype(np.float64)
        if weights is None:
            weights = np.ones(len(correct))
        kept = weights > 0
        if correct[kept].all():
            self.status_ = FitStatus(
                "at-upper-bound",
                "every row of this set is predicted correctly, so the map raises every confidence "
                "to about 1; fit on a larger or harder set.",
            )
        elif not correct[kept].any():
            self.status_ = FitStatus(
                "at-lower-bound",
                "no row of this set is predicted correctly, so the map lowers every confidence to "
                "about 1 / k; check that the labels belong to these rows.",
            )
        self._learn(log_odds[kept], correct[kept], weights[kept] / weights.max())

    @final
    def _apply(self, logits: Logits) -> Probs:
        return rows_with_top1(logits, self._calibrate(top1_log_odds(logits)))

    @abstractmethod
    def _learn(self, log_odds: Array, correct: Array, weights: Weights) -> None:
        """Learn from ``(n,)`` log-odds, zeros and ones, and positive weights."""

    @abstractmethod
    def _calibrate(self, log_odds: Array) -> Array:
        """Calibrated confidences in [0, 1] for ``(n,)`` log-odds."""


class Curve(Top1):
    """A curve through points, linear between them and constant beyond."""

    confidence_: Array
    accuracy_: Array

    @final
    def _calibrate(self, log_odds: Array) -> Array:
        return np.interp(rounded_confidence(log_odds), self.confidence_, self.accuracy_)


def rounded_confidence(log_odds: Array) -> Array:
    """Confidences to 12 decimals.

    Their last bits depend on the order of the classes and on a constant added to the row; rounded
    off, they decide neither what is a tie nor on which side of an edge a row falls.
    """
    from scipy.special import expit

    return np.round(expit(log_odds), 12)


# Log-odds of 1 - 1e-12: no set is large enough to tell confidences above it apart, and a single
# error among them would outweigh all other rows.
FARTHEST = float(np.log(1e12))


@final
class Beta(Top1):
    """Beta calibration of the confidence of the predicted class.

    ``c' = 1 / (1 + exp(-(a log c - b log(1 - c) + m)))`` of greatest likelihood of the predictions
    being right, with ``a, b >= 0`` so that ``c'`` never falls as ``c`` rises; ``a = b = 1, m = 0``
    is the identity. ``c`` is taken as ``1 - 1e-12`` at the most. Never changes which class is
    predicted. (Kull, Silva Filho and Flach 2017)

    Args:
        ridge: ``ridge * ((a - 1)^2 + (b - 1)^2 + m^2)`` is added to the mean negative
            log-likelihood, so that there is one optimum and it is finite on any set.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        a_: Weight of ``log c``.
        b_: Weight of ``-log(1 - c)``.
        m_: Intercept.
    """

    name: ClassVar[str] = "beta"
    a_: float
    b_: float
    m_: float

    def __init__(self, *, ridge: float = 1e-6, input: str = "logits") -> None:
        self.ridge = ridge
        self.input = input

    def _learn(self, log_odds: Array, correct: Array, weights: Weights) -> None:
        ridge = check_not_negative(self.ridge, name="ridge")
        found, done = solve_beta(np.minimum(log_odds, FARTHEST), correct, weights, ridge=ridge)
        self.a_, self.b_, self.m_ = found.tolist()
        if not done:
            self.status_ = FitStatus(
                "not-converged",
                "the beta curve has no optimum on this set, as confidences of correct and wrong "
                "predictions do not overlap; use a larger set, or a ridge above 0.",
            )

    def _calibrate(self, log_odds: Array) -> Array:
        from scipy.special import expit

        odds = beta_log_odds(np.minimum(log_odds, FARTHEST), self.a_, self.b_, self.m_)
        return np.asarray(expit(odds), dtype=np.float64)


@final
class BrierTemperature(OneTemperature):
    """One temperature for all rows: ``softmax(z / T)`` with T of least Brier score.

    The score is the mean over rows of ``sum over k of (p_k - [label = k])**2``. Never changes
    which class is predicted. Weights may have any scale: T depends on their ratios only.

    Args:
        t_range: Smallest and largest temperature allowed.
        input: ``"logits"`` or ``"probabilities"``.
    """

    name: ClassVar[str] = "brier-temperature"

    _solve = staticmethod(solve_brier_temperature)


@final
class Dirichlet(Odir):
    """Dirichlet calibration with ODIR: any linear map of the log-probabilities.

    ``p' = softmax(W log p + b)`` with ``p = softmax(z)``; the right family if the probabilities
    of every class follow a Dirichlet distribution. Matrix scaling is the part of it in which all
    row sums of ``W`` are equal. May change which class is predicted. (Kull et al. 2019)

    Fitted as :class:`~shiftcal.maps.Matrix` is, with the same penalties, settings and
    learnt attributes.
    """

    name: ClassVar[str] = "dirichlet"

    @staticmethod
    def _features(logits: Logits) -> NDArray[np.float64]:
        return log_softmax(logits)


# A part that gives nothing to a label (softmax underflowed) would make the likelihood infinite.
_LEAST_DENSITY = 1e-300
# The uniform part alone predicts no class.
_MOST_UNIFORM = 1 - 1e-6


@final
class EnsembleTemperature(InRange):
    """Temperature scaling, the model and a uniform guess, mixed.

    ``p' = w1 softmax(z / T) + w2 softmax(z) + w3 / k`` with ``w >= 0`` and ``w1 + w2 + w3 = 1``.
    T is the temperature of least negative log-likelihood; then, with T fixed, so is ``w``, which
    is a convex problem. ``w3`` is kept below ``1 - 1e-6``, so that there is a predicted class: it
    is always the model's. (Zhang, Kailkhura and Han 2020, who use squared error for ``w``)

    Args:
        t_range: Smallest and largest temperature allowed.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        temperature_: T.
        weights_: ``(3,)`` weights of the three parts.
    """

    name: ClassVar[str] = "ensemble-temperature"
    temperature_: float
    weights_: NDArray[np.float64]

    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        t_range = check_range(self.t_range, name="t_range")
        cooled = solve_temperature(logits, labels, weights, t_range=t_range)
        self.temperature_ = cooled.temperature
        self.status_ = cooled.status
        n, k = logits.shape
        label = np.arange(n), labels
        parts = [softmax(logits, cooled.temperature)[label], softmax(logits)[label]]
        densities = np.column_stack([*parts, np.full(n, 1 / k)])
        self.weights_, gap = solve_mixture(np.maximum(densities, _LEAST_DENSITY), weights)
        if self.weights_[2] > _MOST_UNIFORM:
            self.weights_ = np.array([1 - _MOST_UNIFORM, 0.0, _MOST_UNIFORM])
        if gap > 1e-6 and self.status_.converged:
            self.status_ = FitStatus(
                "not-converged",
                "the weights of the ensemble may be off: their mean log-likelihood is up to "
                f"{gap:.1e} below the best; use the temperature map on this set.",
            )

    def _apply(self, logits: Logits) -> Probs:
        cooled, own, uniform = self.weights_
        probs = cooled * softmax(logits, self.temperature_)
        probs += own * softmax(logits)
        probs += uniform / logits.shape[1]
        keep_top(probs, logits.argmax(axis=1))
        return probs


@final
class EntropyTemperature(InRange):
    """One temperature per row, a power of the model's entropy on it.

    ``softmax(z / T(z))`` with ``T(z) = exp(a) h^b`` of least negative log-likelihood, ``h`` the
    entropy of ``softmax(z)`` over ``log k``, 1e-6 at least. ``b = 0`` is temperature scaling.
    Never changes the order of the classes of a row. The likelihood is not convex in ``a, b``; the
    best of three searches is taken, one of them from temperature scaling. (After the HTS of
    Balanya, Maroñas and Ramos 2022, whose T is ``softplus(a + b log h)``)

    Args:
        t_range: Smallest and largest temperature of any row.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        log_scale_: ``a``, the logarithm of T where the model is least confident.
        power_: ``b``.
        low_: Smallest temperature, as fitted.
        high_: Largest temperature, as fitted.
    """

    name: ClassVar[str] = "entropy-temperature"
    log_scale_: float
    power_: float
    low_: float
    high_: float

    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        self.low_, self.high_ = check_range(self.t_range, name="t_range")
        found = solve_power(logits, labels, weights, t_range=(self.low_, self.high_))
        self.log_scale_, self.power_, self.status_ = found

    def _apply(self, logits: Logits) -> Probs:
        log_t = self.log_scale_ + self.power_ * log_relative_entropy(logits)
        # Cut as logarithms: exp of a steep power may overflow.
        t = np.exp(np.clip(log_t, np.log(self.low_), np.log(self.high_)))
        scaled = logits.astype(np.float64)
        top = scaled.argmax(axis=1)
        scaled -= np.take_along_axis(scaled, top[:, None], axis=1)
        scaled /= t[:, None]
        probs = softmax(scaled)
        keep_top(probs, top)
        return probs


@final
class Histogram(Top1):
    """Histogram binning of the confidence of the predicted class, in bins of equal size.

    ``c' = accuracy of the bin that c falls into``. Bins hold equal numbers of rows (equal
    weights), give or take one; rows of equal confidence are never parted; edges lie midway
    between the confidences on their two sides, and an edge belongs to the bin below. There is no
    smoothing of the accuracies: added counts would make the scale of the weights matter. Never
    changes which class is predicted. (Zadrozny and Elkan 2001)

    Args:
        n_bins: Most bins there may be; fewer if there are fewer distinct confidences.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        edges_: ``(m - 1,)`` edges between the bins, ascending.
        accuracy_: ``(m,)`` accuracy of each bin.
    """

    name: ClassVar[str] = "histogram"
    edges_: NDArray[np.float64]
    accuracy_: NDArray[np.float64]

    def __init__(self, *, n_bins: int = 15, input: str = "logits") -> None:
        self.n_bins = n_bins
        self.input = input

    def _learn(self, log_odds: Array, correct: Array, weights: Weights) -> None:
        n_bins = check_count(self.n_bins, name="n_bins")
        groups = distinct(rounded_confidence(log_odds), correct, weights)
        self.edges_, self.accuracy_ = equal_weight_bins(groups, n_bins)

    def _calibrate(self, log_odds: Array) -> Array:
        bins = np.searchsorted(self.edges_, rounded_confidence(log_odds), side="left")
        return np.clip(self.accuracy_[bins], 0.0, 1.0)


@final
class Isotonic(Curve):
    """Isotonic regression on the confidence of the predicted class.

    ``c' = f(c)`` with the non-decreasing ``f`` of least ``sum w_i (f(c_i) - r_i)^2``, ``r`` being
    1 where the prediction is right and 0 where it is wrong; linear between the confidences seen,
    constant beyond them. A step function on few rows, and exactly 0 or 1 at its ends more often
    than not. Never changes which class is predicted. (Zadrozny and Elkan 2002)

    Args:
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        confidence_: ``(m,)`` confidences at which ``f`` is known, ascending.
        accuracy_: ``(m,)`` ``f`` there.
    """

    name: ClassVar[str] = "isotonic"

    def __init__(self, *, input: str = "logits") -> None:
        self.input = input

    def _learn(self, log_odds: Array, correct: Array, weights: Weights) -> None:
        from sklearn.isotonic import IsotonicRegression

        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        curve.fit(rounded_confidence(log_odds), correct, sample_weight=weights)
        self.confidence_ = np.asarray(curve.X_thresholds_, dtype=np.float64)
        self.accuracy_ = np.asarray(curve.y_thresholds_, dtype=np.float64)


@final
class Matrix(Odir):
    """Matrix scaling with ODIR: any linear map of the logits.

    ``p' = softmax(W x + b)`` with ``x_i = z_i - mean(z)``, the logits centred row by row: ``W z``
    itself would change with a constant that softmax ignores. Dirichlet calibration takes ``log p``
    for ``x``, which is ``z`` less its log-sum-exp, and so adds one degree of freedom a class, the
    row sum of ``W``: how that class answers to the log-sum-exp. Matrix scaling is Dirichlet
    calibration with all row sums of ``W`` equal, where the offset cancels. May change which class
    is predicted. (Guo et al. 2017; Kull et al. 2019)

    What is minimised is the mean negative log-likelihood plus::

        off_diagonal * sum_{i != j} W_ij^2 + intercept * sum_i b_i^2
            + ridge * (sum_ij (W_ij - [i = j] / T)^2 + sum_i b_i^2)

    with T the temperature of least negative log-likelihood: penalties lead to temperature
    scaling. The problem is convex and solved by L-BFGS. There are ``k (k + 1)`` numbers to fit:
    with 1000 classes a million, which works but takes minutes.

    Args:
        off_diagonal: Penalty on the off-diagonal weights. Kull et al. write
            ``lambda / (k (k - 1))`` for it and tune lambda by cross-validation.
        intercept: Penalty on the intercepts, ``mu / k`` with Kull et al.
        ridge: Pull of all weights towards temperature scaling. Kull et al. have none; then
            nothing holds the diagonal on a set that can be fitted without error.
        max_iter: Most steps of the solver; ``status_`` tells if they were too few.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        weight_: ``(k, k)`` W, a row for each class that comes out.
        intercept_: ``(k,)`` b.
    """

    name: ClassVar[str] = "matrix"

    @staticmethod
    def _features(logits: Logits) -> NDArray[np.float64]:
        z = logits.astype(np.float64)
        z -= z.mean(axis=1, keepdims=True)
        return z


@final
class Spline(Curve):
    """Spline calibration of the confidence of the predicted class.

    ``c' = c + d'(t(c))`` clipped to [0, 1], where ``t(c)`` is the fraction of the fitting set (by
    weight) with confidence up to ``c``, and ``d`` the natural cubic spline nearest in least
    squares to ``D(t)``, the sum of ``r - c`` over that fraction, ``r`` being 1 where the
    prediction is right and 0 where it is wrong. For rows of equal confidence ``d'`` is averaged
    over their part of ``t``; between confidences seen ``c'`` is linear, beyond them constant. As
    published it need not rise with ``c``. Keeps two numbers for every distinct confidence it was
    fitted on. Never changes which class is predicted. (Gupta et al. 2021)

    Args:
        n_knots: Knots of ``d``, equally spaced from 0 to 1; 2 add a constant to all confidences.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        confidence_: ``(m,)`` distinct confidences of the fitting set, ascending.
        accuracy_: ``(m,)`` ``c'`` there.
    """

    name: ClassVar[str] = "spline"

    def __init__(self, *, n_knots: int = 6, input: str = "logits") -> None:
        self.n_knots = n_knots
        self.input = input

    def _learn(self, log_odds: Array, correct: Array, weights: Weights) -> None:
        n_knots = check_count(self.n_knots, name="n_knots", least=2)
        groups = distinct(rounded_confidence(log_odds), correct, weights)
        self.confidence_ = groups.value
        missing = groups.correct - groups.weight * groups.value
        added = smoothed_means(groups.weight, missing, n_knots)
        self.accuracy_ = np.clip(groups.value + added, 0.0, 1.0)


@final
class Temperature(OneTemperature):
    """One temperature for all rows: ``softmax(z / T)`` with T of least negative log-likelihood.

    Never changes which class is predicted. The likelihood is convex in 1/T, so T is the global
    optimum; if it does not lie inside ``t_range``, ``status_`` says at which end T was left and
    why. (Guo et al. 2017)

    Args:
        t_range: Smallest and largest temperature allowed.
        input: ``"logits"`` or ``"probabilities"``.
    """

    name: ClassVar[str] = "temperature"

    _solve = staticmethod(solve_temperature)


@final
class Vector(Map):
    """Vector scaling: a weight and an intercept for every class.

    ``p' = softmax(w * s + b)``, class by class, with ``s = log softmax(z)`` in place of the logits
    ``z``, since ``w * z`` would change with a constant that softmax ignores. ``w`` and ``b`` are
    those of least mean negative log-likelihood plus
    ``ridge * (sum (w_i - 1 / T)^2 + sum b_i^2)``, T being the temperature of least negative
    log-likelihood: where the set has little to say, the map is temperature scaling. The problem
    is convex and solved by L-BFGS. May change which class is predicted. (Guo et al. 2017, who
    have no ridge)

    Args:
        ridge: Pull towards temperature scaling. With 0, classes with few rows or without mistakes
            get weights that mean nothing, and sets that can be fitted without error have no
            optimum. The default costs next to nothing with 500 rows a class and helps with fewer.
        max_iter: Most steps of the solver; ``status_`` tells if they were too few.
        input: ``"logits"`` or ``"probabilities"``.

    Attributes:
        weight_: ``(k,)`` w.
        intercept_: ``(k,)`` b.
    """

    name: ClassVar[str] = "vector"
    preserves_accuracy: ClassVar[bool] = False

    weight_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def __init__(
        self, *, ridge: float = 0.003, max_iter: int = 1000, input: str = "logits"
    ) -> None:
        self.ridge = ridge
        self.max_iter = max_iter
        self.input = input

    def _fit(self, logits: Logits, labels: Labels, weights: Weights | None) -> None:
        ridge = check_not_negative(self.ridge, name="ridge")
        self.weight_, self.intercept_, self.status_ = solve_linear(
            log_softmax(logits),
            labels,
            weights,
            weight_penalty=np.full(logits.shape[1], ridge),
            intercept_penalty=ridge,
            max_iter=check_count(self.max_iter, name="max_iter"),
        )

    def _apply(self, logits: Logits) -> Probs:
        return linear_softmax(log_softmax(logits), self.weight_, self.intercept_)
