"""CPCS and TransCal: importance weights and the temperatures they give."""

from __future__ import annotations

import functools
import math
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from shiftcal import maps
from shiftcal.checks import check_choice, check_count, check_features
from shiftcal.errors import InputError, NotFittedError
from shiftcal.methods.method import Method, Selection, fit_map, mean_selection
from shiftcal.numerics.softmax import p_max
from shiftcal.persistence import Estimator
from shiftcal.surrogates import SurrogateBank
from shiftcal.types import Correct, FitStatus, Flag, Floats, Labels, Logits, Weights

# --------------------------------------------------------------------------------------
# Importance weights from a classifier that tells target from source by features.
# --------------------------------------------------------------------------------------

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

    name: ClassVar[str] = "importance"
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


# --------------------------------------------------------------------------------------
# What is to be known about importance weights before they are trusted.
# --------------------------------------------------------------------------------------

# From here on hardly a source sample looks like the target, and the ratio is extrapolated.
SEPARABLE_AUC = 0.99
# Fewer samples than this do not determine a temperature to better than a tenth or two.
FEWEST_EFFECTIVE = 30.0


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

    clip: float | None
    standardize: bool
    max_iter: int
    seed: int
    repeats: int
    features_: Floats
    source_features_: Floats

    def _keep_features(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        assert source_features is not None
        assert bank.clean.features is not None
        check_count(self.repeats, name="repeats")
        self._weighting(self.seed).check_settings()
        check_width(bank.clean.features, source_features.shape[1], name="features of the bank")
        self.features_ = bank.clean.features
        self.source_features_ = source_features

    def _weighting(self, seed: int) -> ImportanceWeights:
        return ImportanceWeights(
            clip=self.clip, standardize=self.standardize, max_iter=self.max_iter, seed=seed
        )

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        seeds = range(self.seed, self.seed + self.repeats)
        return mean_selection([self._adapt_once(logits, features, seed) for seed in seeds])

    @abstractmethod
    def _adapt_once(self, logits: Logits, features: Floats | None, seed: int) -> Selection:
        """Decide for a checked target, with the weights of one draw."""

    def _selection(
        self,
        temperature: float,
        logits: Logits,
        weights: Weights,
        model: ImportanceWeights,
        *,
        details: Mapping[str, float] | None = None,
        flags: tuple[Flag, ...] = (),
    ) -> Selection:
        return Selection(
            self.name,
            temperature=temperature,
            n_target=len(logits),
            mean_confidence=float(p_max(logits).mean()),
            details={
                **(details or {}),
                "effective_sample_size": effective_sample_size(weights),
                "mean_weight": float(weights.mean()),
                "largest_weight": float(weights.max()),
                "share_clipped": model.share_clipped(self.features_),
                "domain_auc": model.auc_,
            },
            flags=(*weight_flags(weights, model), *flags),
        )


def weight_flags(weights: Weights, model: ImportanceWeights) -> Iterator[Flag]:
    """Every reason to doubt the weights.

    Args:
        weights: ``(n,)`` as they are used.
        model: What gave them.
    """
    if model.auc_ >= SEPARABLE_AUC:
        yield Flag(
            "domains-separable",
            f"the features tell target from source almost perfectly (AUC {model.auc_:.4f}): "
            "hardly any source sample looks like the target, and importance weights mean little.",
        )
    effective = effective_sample_size(weights)
    if effective < FEWEST_EFFECTIVE:
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

READINGS = ("transcal-port", "original")
# U of the original: its bound on the ratio of target to source density.
ORIGINAL_BOUND = 1000.0


@final
class CPCS(Weighted):
    """The temperature of least Brier score on the clean set, weighted to look like the target.

    ``T = argmin Σ_i w_i Σ_k (p_ik(T) − [y_i = k])²`` with importance weights ``w`` (Park et al.,
    2020). It assumes covariate shift: labels depend on inputs in the target as they do in the
    source, and the source has samples wherever the target has.

    Needs features of three sets, all from one layer of one model: source-train
    (``source_features=`` in ``fit``), calibration (of the bank's first set) and target
    (``features=`` in ``adapt``). Has to be tuned again for every target: ``adapt`` trains the
    regression behind the weights and searches T. The target's logits are not used.

    All source-train features are kept until then and saved with the method; where they are many,
    pass a random part of them.

    Args:
        reading: Which weights. ``"transcal-port"``: the ratio ``w = P(target) / P(source)`` as it
            is, as in the code published with TransCal, which later papers compare with.
            ``"original"``: ``w = 1 / g − 1/2`` with ``g = max(P(source), 1 / (1 + U))`` and
            U = 1000, which is the ratio clipped at U plus one half. Of the original this reading
            has the weights only: its domain classifier is a neural network with a calibration of
            its own, on features trained adversarially to hide the domain, and none of these is
            included.
        clip: Largest ratio allowed; ``None`` sets no limit in the port, U in the original.
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
        clip: float | None = None,
        standardize: bool = False,
        max_iter: int = 100,
        seed: int = 0,
        repeats: int = 1,
        input: str = "logits",
    ) -> None:
        self.reading = reading
        self.clip = clip
        self.standardize = standardize
        self.max_iter = max_iter
        self.seed = seed
        self.repeats = repeats
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        check_choice(self.reading, READINGS, name="reading")
        self._keep_features(bank, source_features)
        self.logits_ = bank.clean.logits
        self.labels_ = bank.clean.labels

    def _adapt_once(self, logits: Logits, features: Floats | None, seed: int) -> Selection:
        model = self._weighting(seed).fit(self.source_features_, features)
        weights = self._weights(model)
        map_ = maps.get("brier-temperature")()
        # T depends on the ratios of the weights only; of mean one, their sums stay in range.
        map_.fit_checked(self.logits_, self.labels_, weights / weights.mean())
        status = map_.status_
        trouble = () if status.converged else (Flag("map-not-converged", status.message),)
        return self._selection(map_.temperature_, logits, weights, model, flags=trouble)

    def _weighting(self, seed: int) -> ImportanceWeights:
        weighting = super()._weighting(seed)
        if self.clip is None and self.reading == "original":
            weighting.clip = ORIGINAL_BOUND
        return weighting

    def _weights(self, model: ImportanceWeights) -> Weights:
        ratio = model.weights(self.features_)
        # 1/g = 1 + min(w, U), since P(source) = 1 / (1 + w).
        return ratio + 0.5 if self.reading == "original" else ratio


# --------------------------------------------------------------------------------------
# TransCal's one equation in two unknowns, and the search that solves it (Wang et al., 2020).
#
# A temperature T and an exponent λ of the importance weights are sought such that the mean
# confidence of the target at T equals the target accuracy that the weighted source predicts.
# --------------------------------------------------------------------------------------

# The published search begins here. The equation has a curve of solutions, so this choice is
# part of the method: another start gives another temperature.
START = (2.0, 0.5)
# A spread smaller than this share of the values themselves is rounding, not variance.
_ROUNDING = 1e-12


class TransCalSolution(NamedTuple):
    """Where the search ended.

    Attributes:
        temperature: T.
        exponent: λ; one if the bias term is off.
        accuracy: Estimated target accuracy at λ. Not clipped, so it can leave [0, 1].
        confidence: Mean p_max of the target at T.
        converged: Whether the search says that it converged.
        message: The search's own words.
    """

    temperature: float
    exponent: float
    accuracy: float
    confidence: float
    converged: bool
    message: str

    @property
    def gap(self) -> float:
        """The objective reached, ``|confidence − accuracy|``."""
        return abs(self.confidence - self.accuracy)


def estimated_accuracy(
    log_weights: NDArray[np.float64],
    wrong: Correct,
    exponent: float,
    *,
    source_confidence: float,
    variance: bool = True,
) -> float:
    """Accuracy of the target, from the errors of weighted source samples.

    With ``ŵ = w^λ``, errors ``e`` and ``a = ŵ e`` the estimate is ``1 − mean(a)``. The variance
    term adds two control variates in turn, ``ŵ`` (of mean one if the weights were exact) and
    ``1 − e`` (of mean ``source_confidence`` if the source were calibrated), each times the factor
    ``−Cov/Var`` that lowers the variance most. A control variate that does not vary is left out.

    Args:
        log_weights: ``(n,)`` logarithms of the importance weights ``w``.
        wrong: ``(n,)`` whether the model errs on the sample.
        exponent: ``λ``.
        source_confidence: Mean confidence of the same samples after temperature scaling.
        variance: Whether to use the control variates.
    """
    error = wrong.astype(np.float64)
    weighted = np.exp(exponent * log_weights) * error
    if not variance:
        return 1.0 - float(weighted.mean())
    # (ŵ − 1)/λ instead of ŵ − 1: a control variate may have any scale, and this one has a limit
    # at λ = 0, a corner of the search, where the published quotient is 0/0.
    control = np.expm1(exponent * log_weights) / exponent if exponent > 0 else log_weights
    weighted = weighted - _slope(weighted, control) * control
    risk = float(weighted.mean())
    risk += _slope(weighted, error) * (1.0 - source_confidence - float(error.mean()))
    return 1.0 - risk


def solve_transcal(
    target_logits: Logits,
    log_weights: NDArray[np.float64],
    wrong: Correct,
    *,
    source_confidence: float,
    lower: float,
    bias: bool = True,
    variance: bool = True,
    start: tuple[float, float] = START,
) -> TransCalSolution:
    """Minimise ``|mean p_max(z / T) − estimated accuracy(λ)|`` over ``T >= lower``, λ in [0, 1].

    Args:
        target_logits: ``(m, k)``.
        log_weights: ``(n,)`` of the source samples.
        wrong: ``(n,)`` of the source samples.
        source_confidence: See :func:`estimated_accuracy`.
        lower: Smallest temperature allowed; there is no largest.
        bias: Whether λ is sought; it is one otherwise.
        variance: See :func:`estimated_accuracy`.
        start: T and λ at the start.
    """

    # Differences in λ ask for the same T again, and a pass over the target is the cost of it all.
    @functools.lru_cache(maxsize=4)
    def confidence(temperature: float) -> float:
        return float(p_max(target_logits, temperature).mean())

    def accuracy(exponent: float) -> float:
        return estimated_accuracy(
            log_weights,
            wrong,
            exponent if bias else 1.0,
            source_confidence=source_confidence,
            variance=variance,
        )

    def objective(x: NDArray[np.float64]) -> float:
        return abs(confidence(float(x[0])) - accuracy(float(x[1])))

    with warnings.catch_warnings():
        # Some versions of scipy tell of steps outside the bounds that they then fix themselves.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = minimize(
            objective, np.array(start), method="SLSQP", bounds=((lower, None), (0.0, 1.0))
        )
    temperature, exponent = float(found.x[0]), float(found.x[1])
    return TransCalSolution(
        temperature,
        exponent if bias else 1.0,
        accuracy(exponent),
        confidence(temperature),
        bool(found.success),
        str(found.message),
    )


def _slope(values: NDArray[np.float64], control: NDArray[np.float64]) -> float:
    """``Cov(values, control) / Var(control)``, and zero where the control does not vary."""
    centred = control - control.mean()
    spread = float(centred @ centred)
    if spread <= _ROUNDING**2 * float(control @ control):
        return 0.0
    return float(values @ centred) / spread


# --------------------------------------------------------------------------------------
# TransCal: the temperature at which mean confidence equals the estimated target accuracy.
# --------------------------------------------------------------------------------------

# Smallest temperature of each reading.
TRANSCAL_READINGS = {"official": 1.0, "free": 0.01}
# A mean confidence this far from the estimated accuracy is not the equality that was sought.
_OPEN_GAP = 1e-3


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

    Needs features of three sets, all from one layer of one model: source-train
    (``source_features=`` in ``fit``), calibration (of the bank's first set) and target
    (``features=`` in ``adapt``). Has to be tuned again for every target: ``adapt`` trains the
    regression behind the weights and searches T and λ.

    All source-train features are kept until then and saved with the method; where they are many,
    pass a random part of them.

    Args:
        reading: ``"official"``: T >= 1 as in the published code, which can never sharpen.
            ``"free"``: T >= 0.01, which can; what the SAC paper prints for TransCal on
            ImageNet-Sketch is out of reach with T >= 1.
        bias: Whether λ is sought (bias control); λ = 1 otherwise.
        variance: Whether control variates are used (variance control).
        clip: Largest weight allowed; ``None``, as published, sets no limit.
        standardize: Whether features are standardised for the regression; published: no.
        max_iter: Most iterations of the regression.
        seed: Of the draw that evens out source and target in it.
        repeats: How many draws, with the seeds ``seed``, ``seed + 1``, ...; T is the mean of their
            temperatures. The published script runs ten, unseeded, and reports the ECE of each.
            On a network for digits under noise, T varies by 3 to 29 % from draw to draw
            (standard deviation), a mean of ten draws by 1 to 7 %.
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
        bias: bool = True,
        variance: bool = True,
        clip: float | None = None,
        standardize: bool = False,
        max_iter: int = 100,
        seed: int = 0,
        repeats: int = 1,
        input: str = "logits",
    ) -> None:
        self.reading = reading
        self.bias = bias
        self.variance = variance
        self.clip = clip
        self.standardize = standardize
        self.max_iter = max_iter
        self.seed = seed
        self.repeats = repeats
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        check_choice(self.reading, tuple(TRANSCAL_READINGS), name="reading")
        self._keep_features(bank, source_features)
        clean = bank.clean
        scaling = fit_map("temperature", clean.logits, clean.labels, where=clean.name)
        self.source_confidence_ = float(p_max(clean.logits, scaling.temperature_).mean())
        self.wrong_ = clean.logits.argmax(axis=1) != clean.labels

    def _adapt_once(self, logits: Logits, features: Floats | None, seed: int) -> Selection:
        model = self._weighting(seed).fit(self.source_features_, features)
        log_weights = model.log_weights(self.features_)
        weights = np.exp(log_weights)
        solution = solve_transcal(
            logits,
            log_weights,
            self.wrong_,
            source_confidence=self.source_confidence_,
            lower=TRANSCAL_READINGS[self.reading],
            bias=self.bias,
            variance=self.variance,
        )
        details = {
            "lambda": solution.exponent,
            "estimated_accuracy": solution.accuracy,
            "objective": solution.gap,
            "source_confidence": self.source_confidence_,
        }
        flags = tuple(_flags(solution))
        return self._selection(
            solution.temperature, logits, weights, model, details=details, flags=flags
        )


def _flags(solution: TransCalSolution) -> Iterator[Flag]:
    if not 0 <= solution.accuracy <= 1:
        yield Flag(
            "accuracy-estimate-outside",
            f"the estimated target accuracy is {solution.accuracy:.4f}, outside [0, 1]: the "
            "weights do not describe this shift.",
        )
    if solution.gap > _OPEN_GAP:
        yield Flag(
            "gap-open",
            f"the search ended at T = {solution.temperature:.4g} with a mean confidence of "
            f"{solution.confidence:.4f} where an accuracy of {solution.accuracy:.4f} was "
            "estimated; it found no temperature at which they agree.",
        )
    if not solution.converged:
        yield Flag("search-not-converged", f"the search for T ended early: {solution.message}")
