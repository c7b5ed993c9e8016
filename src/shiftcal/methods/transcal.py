"""TransCal: the temperature at which mean confidence equals the estimated target accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks import check_choice
from shiftcal._types import Flag, Floats, Logits, Probs
from shiftcal.methods._selection import Selection
from shiftcal.methods.base import Method, fit_map, temperature_of
from shiftcal.numerics.softmax import p_max, softmax
from shiftcal.numerics.transcal import TransCalSolution, solve_transcal
from shiftcal.surrogates import SurrogateBank
from shiftcal.weighting import ImportanceWeights, weight_details, weight_flags
from shiftcal.weighting.importance import check_width

# Smallest temperature of each reading.
READINGS = {"official": 1.0, "free": 0.01}
# A mean confidence this far from the estimated accuracy is not the equality that was sought.
_OPEN_GAP = 1e-3


@final
class TransCal(Method):
    """The T at which the target's mean confidence equals its accuracy, estimated by weights.

    Minimises ``|mean p_max(z / T) − accuracy(λ)|`` over T and an exponent λ in [0, 1] of the
    importance weights (Wang et al., 2020); :func:`~shiftcal.numerics.transcal.estimated_accuracy`
    has the formula. This is ECE of one bin, with the accuracy guessed from weighted source errors.

    One equation does not determine two unknowns: a whole curve of (T, λ) solves it, and T is the
    point that the published search (SLSQP from T = 2, λ = 0.5) reaches first. The start is
    therefore part of the method, and T says less than its digits suggest. The estimated accuracy
    is not clipped, as in the published code; a flag tells when it leaves [0, 1]. Where the
    published objective is 0/0 (λ = 0, equal weights, a source without errors or with nothing
    else) it has its limit here, or the control variate that cannot vary is left out.

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
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        wrong_: ``(n,)`` whether the model errs, on the calibration set.
        source_confidence_: Mean confidence of the calibration set after temperature scaling.
        features_: ``(n, d)`` of the calibration set.
        source_features_: ``(m, d)`` of source-train.
    """

    uses_target = True
    uses_features = True

    wrong_: NDArray[np.bool_]
    source_confidence_: float
    features_: Floats
    source_features_: Floats

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
        input: str = "logits",
    ) -> None:
        self.reading = reading
        self.bias = bias
        self.variance = variance
        self.clip = clip
        self.standardize = standardize
        self.max_iter = max_iter
        self.seed = seed
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        clean = bank.clean
        assert source_features is not None
        assert clean.features is not None
        check_choice(self.reading, tuple(READINGS), name="reading")
        self._weighting().check_settings()
        check_width(clean.features, source_features.shape[1], name="features of the bank")
        scaling = fit_map("temperature", clean.logits, clean.labels, where=clean.name)
        temperature = temperature_of(scaling)
        assert temperature is not None
        self.source_confidence_ = float(p_max(clean.logits, temperature).mean())
        self.wrong_ = clean.logits.argmax(axis=1) != clean.labels
        self.features_ = clean.features
        self.source_features_ = source_features

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        model = self._weighting().fit(self.source_features_, features)
        log_weights = model.log_weights(self.features_)
        weights = np.exp(log_weights)
        solution = solve_transcal(
            logits,
            log_weights,
            self.wrong_,
            source_confidence=self.source_confidence_,
            lower=READINGS[self.reading],
            bias=self.bias,
            variance=self.variance,
        )
        return Selection(
            self.name(),
            temperature=solution.temperature,
            n_target=len(logits),
            mean_confidence=float(p_max(logits).mean()),
            details={
                "lambda": solution.exponent,
                "estimated_accuracy": solution.accuracy,
                "objective": solution.gap,
                "source_confidence": self.source_confidence_,
                **weight_details(weights, model, self.features_),
            },
            flags=(*weight_flags(weights, model), *_flags(solution)),
        )

    def _apply(self, logits: Logits) -> Probs:
        assert self.selection_ is not None
        assert self.selection_.temperature is not None
        return softmax(logits, self.selection_.temperature)

    def _weighting(self) -> ImportanceWeights:
        return ImportanceWeights(
            clip=self.clip,
            standardize=self.standardize,
            max_iter=self.max_iter,
            seed=self.seed,
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
