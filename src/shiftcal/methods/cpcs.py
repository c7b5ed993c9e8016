"""Calibrated prediction with covariate shift: importance-weighted temperature scaling."""

from __future__ import annotations

from typing import final

from shiftcal import maps
from shiftcal._checks import check_choice
from shiftcal._types import Flag, Floats, Labels, Logits, Probs, Weights
from shiftcal.methods._selection import Selection
from shiftcal.methods.base import Method
from shiftcal.numerics.softmax import p_max, softmax
from shiftcal.surrogates import SurrogateBank
from shiftcal.weighting import ImportanceWeights, weight_details, weight_flags
from shiftcal.weighting.importance import check_width

READINGS = ("transcal-port", "original")
# U of the original: its bound on the ratio of target to source density.
ORIGINAL_BOUND = 1000.0


@final
class CPCS(Method):
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
        input: What the model gives: ``"logits"`` or ``"probabilities"``.

    Attributes:
        logits_: ``(n, k)`` of the calibration set.
        labels_: ``(n,)`` of the calibration set.
        features_: ``(n, d)`` of the calibration set.
        source_features_: ``(m, d)`` of source-train.
    """

    uses_target = True
    uses_features = True

    logits_: Logits
    labels_: Labels
    features_: Floats
    source_features_: Floats

    def __init__(
        self,
        *,
        reading: str = "transcal-port",
        clip: float | None = None,
        standardize: bool = False,
        max_iter: int = 100,
        seed: int = 0,
        input: str = "logits",
    ) -> None:
        self.reading = reading
        self.clip = clip
        self.standardize = standardize
        self.max_iter = max_iter
        self.seed = seed
        self.input = input

    def _fit(self, bank: SurrogateBank, source_features: Floats | None) -> None:
        assert source_features is not None
        assert bank.clean.features is not None
        check_choice(self.reading, READINGS, name="reading")
        self._weighting().check_settings()
        check_width(bank.clean.features, source_features.shape[1], name="features of the bank")
        self.logits_ = bank.clean.logits
        self.labels_ = bank.clean.labels
        self.features_ = bank.clean.features
        self.source_features_ = source_features

    def _adapt(self, logits: Logits, features: Floats | None) -> Selection:
        model = self._weighting().fit(self.source_features_, features)
        weights = self._weights(model)
        map_ = maps.get("brier-temperature")()
        # T depends on the ratios of the weights only; of mean one, their sums stay in range.
        map_.fit_checked(self.logits_, self.labels_, weights / weights.mean())
        status = map_.status_
        trouble = () if status.converged else (Flag("map-not-converged", status.message),)
        return Selection(
            self.name(),
            temperature=map_.temperature_,
            n_target=len(logits),
            mean_confidence=float(p_max(logits).mean()),
            details=weight_details(weights, model, self.features_),
            flags=(*weight_flags(weights, model), *trouble),
        )

    def _apply(self, logits: Logits) -> Probs:
        assert self.selection_ is not None
        assert self.selection_.temperature is not None
        return softmax(logits, self.selection_.temperature)

    def _weighting(self) -> ImportanceWeights:
        clip = self.clip
        if clip is None and self.reading == "original":
            clip = ORIGINAL_BOUND
        return ImportanceWeights(
            clip=clip, standardize=self.standardize, max_iter=self.max_iter, seed=self.seed
        )

    def _weights(self, model: ImportanceWeights) -> Weights:
        ratio = model.weights(self.features_)
        # 1/g = 1 + min(w, U), since P(source) = 1 / (1 + w).
        return ratio + 0.5 if self.reading == "original" else ratio
