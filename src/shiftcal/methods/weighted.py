"""CPCS and TransCal: importance weights and the temperatures they give."""

from __future__ import annotations

import functools
import math
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from shiftcal import errors, maps
from shiftcal.checks import check_choice, check_count, check_features
from shiftcal.errors import InputError
from shiftcal.methods.method import Method, Selection, fit_map
from shiftcal.numerics.softmax import p_max
from shiftcal.numerics.temperature import FitStatus
from shiftcal.persistence import Estimator
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Correct, Flag, Floats, Labels, Logits, Weights

# Ratios outside 1e-100 ... 1e100 are set to the end they passed: no weight is zero or infinite,
# and neither squares of weights nor sums of squares overflow.
_LARGEST_LOG_WEIGHT = 100 * math.log(10)
# U of the original CPCS: its bound on the ratio of target to source density.
_LARGEST_RATIO = 1000.0
# From here on hardly a source sample looks like the target, and the ratio is extrapolated.
_SEPARABLE_AUC = 0.99
# Fewer samples than this do not determine a temperature to better than a tenth or two.
_FEWEST_EFFECTIVE = 30.0


@final
class ImportanceWeights(Estimator):
    """Density ratio of target to source, ``w(f) = P(target | f) / P(source | f)``.

    The probabilities are those of a logistic regression (L2 penalty, C = 1, as in TransCal's
    reference code) between source-train and target features, the smaller domain drawn up to the
    size of the larger with replacement. Weights are not normalised: their mean over source
    samples is near one only as far as the regression describes the shift. They lie within
    1e-100 and 1e100 in any case.

    Args:
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

    name: ClassVar[str] = "importance"
    kind: ClassVar[str] = "weighting"

    coef_: NDArray[np.float64]
    intercept_: float
    auc_: float
    status_: FitStatus

    def __init__(self, *, standardize: bool = False, max_iter: int = 100, seed: int = 0) -> None:
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
        check_count(self.max_iter, name="max_iter")
        check_count(self.seed, name="seed", least=0)
        source = check_features(source_features, name="source_features")
        return self._fit_checked(source, check_features(target_features, name="target_features"))

    def _fit_checked(self, source: Floats, target: Floats) -> Self:
        """The same for checked arrays and settings."""
        from sklearn.metrics import roc_auc_score

        check_width(target, source.shape[1], name="target_features")
        self.__dict__.pop("coef_", None)  # a failed fit leaves it unfitted, not half fitted
        features, is_target, counts = self._balanced(source, target)
        centre, scale = np.zeros(source.shape[1]), np.ones(source.shape[1])
        if self.standardize:
            share = counts / counts.sum()
            centre = share @ features
            scale = np.sqrt(share @ (features - centre) ** 2)
            # A spread that is only rounding must not be blown up to one, nor a zero divided by.
            scale[scale <= 1e-12 * np.abs(centre)] = 1.0
        features -= centre
        features /= scale
        coef, intercept = self._regress(features, is_target, counts)
        self.auc_ = float(roc_auc_score(is_target, features @ coef, sample_weight=counts))
        self.intercept_ = intercept - float(centre @ (coef / scale))
        self.coef_ = coef / scale
        return self

    def log_weights(self, features: object) -> NDArray[np.float64]:
        """Logarithm of the weight of every row, finite.

        Args:
            features: ``(n, d)``, of source samples other than those fitted on, such as the
                calibration set.
        """
        if not hasattr(self, "coef_"):
            raise errors.NotFittedError("these weights are not fitted yet; call fit first.")
        f = check_features(features, name="features")
        check_width(f, len(self.coef_), name="features")
        return self._log_weights(f)

    def _log_weights(self, features: Floats) -> NDArray[np.float64]:
        """The same for checked features."""
        ratio = features @ self.coef_ + self.intercept_
        return np.clip(ratio, -_LARGEST_LOG_WEIGHT, _LARGEST_LOG_WEIGHT)

    def weights(self, features: object) -> Weights:
        """The weight of every row; see :meth:`log_weights`."""
        return np.exp(self.log_weights(features))

    def _balanced(
        self, source: Floats, target: Floats
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
        """Rows of both domains with how often each was drawn; both domains add up to the same.

        Drawing a row twice is giving it weight two, in half the memory.
        """
        most = max(len(source), len(target))
        rng = np.random.default_rng(self.seed)
        counts = np.ones(len(source) + len(target))
        for n, rows in (
            (len(source), slice(None, len(source))),
            (len(target), slice(len(source), None)),
        ):
            if n < most:
                counts[rows] = np.bincount(rng.integers(n, size=most), minlength=n)
        is_target = np.arange(len(counts)) >= len(source)
        features = np.empty((len(counts), source.shape[1]), dtype=np.float64)
        np.concatenate([source, target], out=features)
        drawn = counts > 0
        if drawn.all():
            return features, is_target, counts
        return features[drawn], is_target[drawn], counts[drawn]

    def _regress(
        self,
        features: NDArray[np.float64],
        is_target: NDArray[np.bool_],
        counts: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], float]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        self.status_ = FitStatus("converged")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = LogisticRegression(max_iter=self.max_iter).fit(features, is_target, counts)
        if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
            self.status_ = FitStatus(
                "not-converged",
                "the regression that tells target from source features did not converge in "
                f"{self.max_iter} iterations; its weights depend on where it stopped. Use "
                "standardize=True or a larger max_iter.",
            )
        return model.coef_[0], float(model.intercept_[0])


def check_width(features: Floats, d: int, *, name: str) -> None:
    """Reject features that have another number of columns than those seen before."""
    if features.shape[1] != d:
        raise InputError(
            f"{name} must have {d} columns, as many as the features of the source; got "
            f"{features.shape[1]}. All of them must come from the same layer of one model."
        )


def effective_sample_size(weights: Weights) -> float:
    """``(Σw)² / Σw²``: the number of equal weights that would vary as much in a mean.

    Args:
        weights: ``(n,)``, positive.
    """
    w = weights / weights.max()
    return float(w.sum() ** 2 / (w @ w))


class Weighted(Method):
    """A method that weighs the calibration set by importance for every target.

    Attributes:
        features_: ``(n, d)`` of the calibration set.
        source_features_: ``(m, d)`` of source-train.
    """

    uses_target: ClassVar[bool] = True
    uses_features: ClassVar[bool] = True

    standardize: bool
    max_iter: int
    seed: int
    repeats: int
    features_: Floats
    source_features_: Floats

    def _keep_features(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        assert source_features is not None
        assert bank.clean.features is not None
        for name, least in (("repeats", 1), ("max_iter", 1), ("seed", 0)):
            check_count(getattr(self, name), name=name, least=least)
        check_width(bank.clean.features, source_features.shape[1], name="features of the bank")
        self.features_ = bank.clean.features
        self.source_features_ = source_features

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        assert features is not None
        draws = []
        for seed in range(self.seed, self.seed + self.repeats):
            model = ImportanceWeights(
                standardize=self.standardize, max_iter=self.max_iter, seed=seed
            )._fit_checked(self.source_features_, features)
            log_weights = model._log_weights(self.features_)
            weights = self._weights(np.exp(log_weights))
            temperature, details, flags = self._solve(logits, log_weights, weights)
            weighting = {
                "effective_sample_size": effective_sample_size(weights),
                "mean_weight": float(weights.mean()),
                "largest_weight": float(weights.max()),
                "domain_auc": model.auc_,
            }
            draws.append(
                Selection(
                    self.name,
                    temperature=temperature,
                    n_target=len(logits),
                    mean_confidence=float(p_max(logits).mean()),
                    details=details | weighting,
                    flags=(*weight_flags(weights, model), *flags),
                )
            )
        return _mean(draws)

    def _weights(self, ratio: Weights) -> Weights:
        """The weights, from the ratio of target to source density."""
        return ratio

    @abstractmethod
    def _solve(
        self, logits: Logits, log_weights: NDArray[np.float64], weights: Weights
    ) -> tuple[float, dict[str, float], tuple[Flag, ...]]:
        """Temperature, details and flags for a target, with the weights of one draw."""


def _mean(selections: Sequence[Selection]) -> Selection:
    """Several draws as one: mean temperature and details, every kind of flag once.

    A single one stays as it is; of more, ``details`` get the standard deviation of the
    temperatures, ``temperature_sd``.
    """
    first = selections[0]
    temperatures = [s.temperature for s in selections if s.temperature is not None]
    if len(temperatures) < 2:
        return first
    details = {name: fmean(s.details[name] for s in selections) for name in first.details}
    flags = {flag.code: flag for s in reversed(selections) for flag in reversed(s.flags)}
    return replace(
        first,
        temperature=fmean(temperatures),
        details={**details, "temperature_sd": stdev(temperatures)},
        flags=tuple(reversed(flags.values())),
    )


def weight_flags(weights: Weights, model: ImportanceWeights) -> Iterator[Flag]:
    """Every reason to doubt the weights.

    Args:
        weights: ``(n,)`` as they are used.
        model: What gave them.
    """
    if model.auc_ >= _SEPARABLE_AUC:
        yield Flag(
            "domains-separable",
            f"the features tell target from source almost perfectly (AUC {model.auc_:.4f}): "
            "hardly any source sample looks like the target, and importance weights mean little.",
        )
    effective = effective_sample_size(weights)
    if effective < _FEWEST_EFFECTIVE:
        yield Flag(
            "few-effective-samples",
            f"the weights leave an effective sample size of {effective:.1f} out of "
            f"{len(weights)}: a few calibration samples decide.",
        )
    if not model.status_.converged:
        yield Flag("weights-not-converged", model.status_.message)


# --------------------------------------------------------------------------------------
# Calibrated prediction with covariate shift: importance-weighted temperature scaling.
# --------------------------------------------------------------------------------------


@final
class CPCS(Weighted):
    """The temperature of least Brier score on the clean set, weighted to look like the target.

    ``T = argmin Σ_i w_i Σ_k (p_ik(T) − [y_i = k])²`` with importance weights ``w`` (Park et al.,
    2020). It assumes covariate shift: labels depend on inputs
    in the target as they do in the source, and the source has samples wherever the target has.

    Needs features of three sets, all from one layer of one model: source-train
    (``source_features=`` in ``fit``), calibration (of the bank's first set) and target
    (``features=`` in ``adapt``). Has to be tuned again for every target: ``adapt`` trains the
    regression behind the weights and searches T. The target's logits are not used.

    All source-train features are kept until then and saved with the method; where they are many,
    pass a random part of them.

    Args:
        reading: Which weights. ``"transcal-port"``: the ratio ``w = P(target) / P(source)`` as it
            is, as in the code published with TransCal, which later papers compare with.
            ``"original"``: ``min(w, U) + 1/2`` with U = 1000, the weights of the CPCS paper,
            without its neural domain classifier and adversarial features.
        standardize: Whether features are standardised for the regression; the port does not.
        max_iter: Most iterations of the regression.
        seed: Of the draw that evens out source and target in it.
        repeats: How many draws, with the seeds ``seed``, ``seed + 1``, ...; T is the mean of their
            temperatures. The published script runs ten, unseeded, and reports the ECE of each.
            On a network for digits under noise, T varies by 10 to 76 % from draw to draw
            (standard deviation), a mean of ten draws by 2 to 13 %.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        logits_: ``(n, k)`` of the calibration set.
        labels_: ``(n,)`` of the calibration set.
        features_: ``(n, d)`` of the calibration set.
        source_features_: ``(m, d)`` of source-train.
    """

    name: ClassVar[str] = "cpcs"

    logits_: Logits
    labels_: Labels

    def __init__(
        self,
        *,
        reading: str = "transcal-port",
        standardize: bool = False,
        max_iter: int = 100,
        seed: int = 0,
        repeats: int = 1,
        input: str = "logits",
    ) -> None:
        self.reading = reading
        self.standardize = standardize
        self.max_iter = max_iter
        self.seed = seed
        self.repeats = repeats
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        check_choice(self.reading, ("transcal-port", "original"), name="reading")
        self._keep_features(bank, source_features)
        self.logits_ = bank.clean.logits
        self.labels_ = bank.clean.labels

    def _weights(self, ratio: Weights) -> Weights:
        return ratio if self.reading == "transcal-port" else np.minimum(ratio, _LARGEST_RATIO) + 0.5

    def _solve(
        self, logits: Logits, log_weights: NDArray[np.float64], weights: Weights
    ) -> tuple[float, dict[str, float], tuple[Flag, ...]]:
        # T depends on the ratios of the weights only; of mean one, their sums stay in range.
        map_ = maps.BrierTemperature()
        map_.fit_checked(self.logits_, self.labels_, weights / weights.mean())
        status = map_.status_
        flags = () if status.converged else (Flag("map-not-converged", status.message),)
        return map_.temperature_, {}, flags


# --------------------------------------------------------------------------------------
# TransCal's one equation in two unknowns, and the search that solves it (Wang et al., 2020).
#
# A temperature T and an exponent λ of the importance weights are sought such that the mean
# confidence of the target at T equals the target accuracy that the weighted source predicts.
# --------------------------------------------------------------------------------------

# The published search begins here. The equation has a curve of solutions, so this choice is
# part of the method: another start gives another temperature.
_START = (2.0, 0.5)
# A spread smaller than this share of the values themselves is rounding, not variance.
_ROUNDING = 1e-12
# Smallest temperature of each reading.
READINGS = {"official": 1.0, "free": 0.01}
# A mean confidence this far from the estimated accuracy is not the equality that was sought.
_OPEN_GAP = 1e-3


def estimated_accuracy(
    log_weights: NDArray[np.float64], wrong: Correct, exponent: float, *, source_confidence: float
) -> float:
    """Accuracy of the target, from the errors of weighted source samples.

    With ``ŵ = w^λ``, errors ``e`` and ``a = ŵ e`` the estimate is ``1 − mean(a)`` with two control
    variates in turn, ``ŵ`` (of mean one if the weights were exact) and ``1 − e`` (of mean
    ``source_confidence`` if the source were calibrated), each times the factor ``−Cov/Var`` that
    lowers the variance most. A control variate that does not vary is left out.

    Args:
        log_weights: ``(n,)`` logarithms of the importance weights ``w``.
        wrong: ``(n,)`` whether the model errs on the sample.
        exponent: ``λ``.
        source_confidence: Mean confidence of the same samples after temperature scaling.
    """
    error = wrong.astype(np.float64)
    weighted = np.exp(exponent * log_weights) * error
    # (ŵ − 1)/λ instead of ŵ − 1: a control variate may have any scale, and this one has a limit
    # at λ = 0, a corner of the search, where the published quotient is 0/0.
    control = np.expm1(exponent * log_weights) / exponent if exponent > 0 else log_weights
    weighted = weighted - _slope(weighted, control) * control
    risk = float(weighted.mean())
    risk += _slope(weighted, error) * (1.0 - source_confidence - float(error.mean()))
    return 1.0 - risk


def _slope(values: NDArray[np.float64], control: NDArray[np.float64]) -> float:
    """``Cov(values, control) / Var(control)``, and zero where the control does not vary."""
    centred = control - control.mean()
    spread = float(centred @ centred)
    if spread <= _ROUNDING**2 * float(control @ control):
        return 0.0
    return float(values @ centred) / spread


@final
class TransCal(Weighted):
    """The T at which the target's mean confidence equals its accuracy, estimated by weights.

    Minimises ``|mean p_max(z / T) − accuracy(λ)|`` over T and an exponent λ in [0, 1] of the
    importance weights (Wang et al., 2020); :func:`~shiftcal.methods.weighted.estimated_accuracy`
    has the formula. This is ECE of one bin, with the accuracy guessed from weighted source errors.

    One equation does not determine two unknowns: a whole curve of (T, λ) solves it, and T is the
    point that the published search (SLSQP from T = 2, λ = 0.5) reaches first. The start is
    therefore part of the method, and T says less than its digits suggest. The estimated accuracy
    is not clipped, as in the published code; a flag tells when it leaves [0, 1]. Where the
    published objective is 0/0 (λ = 0, equal weights, a source without errors or with nothing
    else) it has its limit here, or the control variate that cannot vary is left out. Close to
    λ = 0 the published quotient is rounding noise, on which its search can stop early; ours takes
    the limit and continues (on one set T = 1.1478 here, 1.4726 there).

    Needs features of three sets, and is tuned again for every target, as :class:`CPCS`; source
    features are kept and saved likewise.

    Args:
        reading: ``"official"``: T >= 1 as in the published code, which can never sharpen.
            ``"free"``: T >= 0.01, which can; what the SAC paper prints for TransCal on
            ImageNet-Sketch is out of reach with T >= 1.
        standardize: Whether features are standardised for the regression; published: no.
        max_iter: Most iterations of the regression.
        seed: Of the draw that evens out source and target in it.
        repeats: How many draws, as for :class:`CPCS`. On a network for digits under noise, T varies
            by 3 to 29 % from draw to draw (standard deviation), a mean of ten draws by 1 to 7 %.
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        wrong_: ``(n,)`` whether the model errs, on the calibration set.
        source_confidence_: Mean confidence of the calibration set after temperature scaling.
        features_: ``(n, d)`` of the calibration set.
        source_features_: ``(m, d)`` of source-train.
    """

    name: ClassVar[str] = "transcal"

    wrong_: NDArray[np.bool_]
    source_confidence_: float

    def __init__(
        self,
        *,
        reading: str = "official",
        standardize: bool = False,
        max_iter: int = 100,
        seed: int = 0,
        repeats: int = 1,
        input: str = "logits",
    ) -> None:
        self.reading = reading
        self.standardize = standardize
        self.max_iter = max_iter
        self.seed = seed
        self.repeats = repeats
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        check_choice(self.reading, tuple(READINGS), name="reading")
        self._keep_features(bank, source_features)
        clean = bank.clean
        scaling = fit_map("temperature", clean.logits, clean.labels, where=clean.name)
        self.source_confidence_ = float(p_max(clean.logits, scaling.temperature_).mean())
        self.wrong_ = clean.logits.argmax(axis=1) != clean.labels

    def _solve(
        self, logits: Logits, log_weights: NDArray[np.float64], weights: Weights
    ) -> tuple[float, dict[str, float], tuple[Flag, ...]]:
        from scipy.optimize import minimize

        # Differences in λ ask for the same T again, and a pass over the target is the cost of it.
        @functools.lru_cache(maxsize=4)
        def confidence(temperature: float) -> float:
            return float(p_max(logits, temperature).mean())

        def accuracy(exponent: float) -> float:
            return estimated_accuracy(
                log_weights, self.wrong_, exponent, source_confidence=self.source_confidence_
            )

        def objective(x: NDArray[np.float64]) -> float:
            return abs(confidence(float(x[0])) - accuracy(float(x[1])))

        bounds = ((READINGS[self.reading], None), (0.0, 1.0))
        with warnings.catch_warnings():
            # Some versions of scipy tell of steps outside the bounds that they then fix themselves.
            warnings.simplefilter("ignore", RuntimeWarning)
            found = minimize(objective, np.array(_START), method="SLSQP", bounds=bounds)
        temperature, exponent = float(found.x[0]), float(found.x[1])
        reached, estimate = confidence(temperature), accuracy(exponent)
        details = {
            "lambda": exponent,
            "estimated_accuracy": estimate,
            "objective": abs(reached - estimate),
            "source_confidence": self.source_confidence_,
        }
        flags = []
        if not 0 <= estimate <= 1:
            flags.append(
                Flag(
                    "accuracy-estimate-outside",
                    f"the estimated target accuracy is {estimate:.4f}, outside [0, 1]: the weights "
                    "do not describe this shift.",
                )
            )
        if abs(reached - estimate) > _OPEN_GAP:
            flags.append(
                Flag(
                    "gap-open",
                    f"the search ended at T = {temperature:.4g} with a mean confidence of "
                    f"{reached:.4f} where an accuracy of {estimate:.4f} was estimated; it found no "
                    "temperature at which they agree.",
                )
            )
        if not found.success:
            flags.append(
                Flag("search-not-converged", f"the search for T ended early: {found.message}")
            )
        return temperature, details, tuple(flags)
