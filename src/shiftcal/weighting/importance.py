"""Importance weights from a classifier that tells target from source by features."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_count, check_features
from shiftcal._estimator import Estimator
from shiftcal._types import FitStatus, Floats, Weights
from shiftcal.errors import InputError, NotFittedError

# Ratios outside 1e-100 ... 1e100 are set to the end they passed: no weight is zero or infinite,
# and neither squares of weights nor sums of squares overflow.
LARGEST_LOG_WEIGHT = 100 * math.log(10)
_NOT_CONVERGED = (
    "the regression that tells target from source features did not converge in {max_iter} "
    "iterations; its weights depend on where it stopped. Use standardize=True or a larger "
    "max_iter."
)


@final
class ImportanceWeights(Estimator):
    """Density ratio of target to source, ``w(f) = P(target | f) / P(source | f)``.

    The probabilities are those of a logistic regression (L2 penalty, C = 1, as in TransCal's
    reference code) between source-train and target features, the smaller domain drawn up to the
    size of the larger with replacement. Weights are not normalised: their mean over source
    samples is near one only as far as the regression describes the shift. They lie within
    1e-100 and 1e100 in any case.

    Args:
        clip: Largest weight allowed; ``None`` sets no limit.
        standardize: Whether features are centred and scaled to unit variance first. The reference
            does not; do it where their scales differ or the regression does not converge.
        max_iter: Most iterations of the regression.
        seed: Of the draw that evens out the sizes; the same seed gives the same weights.

    Attributes:
        coef_: ``(d,)`` of ``log w(f) = coef · f + intercept``, in the features' own units.
        intercept_: The other half.
        auc_: Area under the ROC curve of the two domains as the regression tells them apart;
            0.5 means not at all, 1 that no source sample looks like a target sample.
        status_: Whether the regression converged.
    """

    kind: ClassVar[str] = "weighting"

    coef_: NDArray[np.float64]
    intercept_: float
    auc_: float
    status_: FitStatus

    def __init__(
        self,
        *,
        clip: float | None = None,
        standardize: bool = False,
        max_iter: int = 100,
        seed: int = 0,
    ) -> None:
        self.clip = clip
        self.standardize = standardize
        self.max_iter = max_iter
        self.seed = seed

    def fit(self, source_features: object, target_features: object) -> Self:
        """Learn to tell the domains apart.

        Args:
            source_features: ``(m, d)``, of the samples the model was trained on.
            target_features: ``(n, d)``, of the unlabelled target.

        Raises:
            InputError: If the arrays or the settings cannot be used.
        """
        self.check_settings()
        source = check_features(source_features, name="source_features")
        target = check_features(target_features, name="target_features")
        check_width(target, source.shape[1], name="target_features")
        self.__dict__.pop("coef_", None)  # a failed fit leaves it unfitted, not half fitted
        features, is_target, counts = self._balanced(source, target)
        centre, scale = self._units(features, counts)
        features -= centre
        features /= scale
        coef, intercept, self.status_ = _regress(features, is_target, counts, self.max_iter)
        self.auc_ = _auc(features @ coef, is_target, counts)
        self.intercept_ = intercept - float(centre @ (coef / scale))
        self.coef_ = coef / scale
        return self

    def log_weights(self, features: object) -> NDArray[np.float64]:
        """Logarithm of the weight of every row, clipped and finite.

        Args:
            features: ``(n, d)``, of source samples other than those fitted on, such as the
                calibration set.
        """
        highest = LARGEST_LOG_WEIGHT if self.clip is None else math.log(self.clip)
        return np.clip(
            self._log_ratio(features),
            -LARGEST_LOG_WEIGHT,
            min(highest, LARGEST_LOG_WEIGHT),
        )

    def weights(self, features: object) -> Weights:
        """The weight of every row; see :meth:`log_weights`."""
        return np.exp(self.log_weights(features))

    def share_clipped(self, features: object) -> float:
        """Fraction of the rows whose ratio lies above ``clip`` (above 1e100 without it)."""
        highest = LARGEST_LOG_WEIGHT if self.clip is None else math.log(self.clip)
        return float((self._log_ratio(features) > highest).mean())

    def check_settings(self) -> None:
        """Refuse settings that cannot be used."""
        check_count(self.max_iter, name="max_iter")
        check_count(self.seed, name="seed", least=0)
        clip = self.clip
        if clip is not None and not (isinstance(clip, numbers.Real) and 0 < clip < math.inf):
            raise InputError(f"clip must be a positive number, or None for no limit; got {clip!r}.")

    def _log_ratio(self, features: object) -> NDArray[np.float64]:
        if not hasattr(self, "coef_"):
            raise NotFittedError(
                "these ImportanceWeights are not fitted yet; call fit with features of "
                "source-train and target first."
            )
        f = check_features(features, name="features")
        check_width(f, len(self.coef_), name="features")
        return f @ self.coef_ + self.intercept_

    def _balanced(
        self, source: Floats, target: Floats
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
        """Rows of both domains with how often each was drawn; both domains add up to the same.

        Drawing a row twice is giving it weight two, in half the memory.
        """
        most = max(len(source), len(target))
        rng = np.random.default_rng(self.seed)
        counts = np.concatenate([_draws(len(f), most, rng) for f in (source, target)])
        is_target = np.arange(len(counts)) >= len(source)
        features = np.empty((len(counts), source.shape[1]), dtype=np.float64)
        np.concatenate([source, target], out=features)
        drawn = counts > 0
        if drawn.all():
            return features, is_target, counts
        return features[drawn], is_target[drawn], counts[drawn]

    def _units(
        self, features: NDArray[np.float64], counts: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Centre and scale of every column: zero and one unless standardising."""
        if not self.standardize:
            d = features.shape[1]
            return np.zeros(d), np.ones(d)
        share = counts / counts.sum()
        centre = share @ features
        scale = np.sqrt(share @ (features - centre) ** 2)
        # A spread that is only rounding must not be blown up to one, nor a zero divided by.
        scale[scale <= 1e-12 * np.abs(centre)] = 1.0
        return centre, scale


def check_width(features: Floats, d: int, *, name: str) -> None:
    """Refuse features that have another number of columns than those seen before."""
    if features.shape[1] != d:
        raise InputError(
            f"{name} must have {d} columns, as many as the features of the source; got "
            f"{features.shape[1]}. All of them must come from the same layer of one model."
        )


def _draws(n: int, most: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """How often each of ``n`` rows occurs among ``most``: once each, or drawn at random."""
    if n == most:
        return np.ones(n)
    return np.bincount(rng.integers(n, size=most), minlength=n).astype(np.float64)


def _regress(
    features: NDArray[np.float64],
    is_target: NDArray[np.bool_],
    counts: NDArray[np.float64],
    max_iter: int,
) -> tuple[NDArray[np.float64], float, FitStatus]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    status = FitStatus("converged")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LogisticRegression(max_iter=max_iter).fit(features, is_target, counts)
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            status = FitStatus("not-converged", _NOT_CONVERGED.format(max_iter=max_iter))
    return model.coef_[0], float(model.intercept_[0]), status


def _auc(
    score: NDArray[np.float64], is_target: NDArray[np.bool_], counts: NDArray[np.float64]
) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(is_target, score, sample_weight=counts))
