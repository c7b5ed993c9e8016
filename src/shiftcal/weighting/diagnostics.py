"""What is to be known about importance weights before they are trusted."""

from __future__ import annotations

from collections.abc import Iterator

from shiftcal._types import Flag, Weights
from shiftcal.weighting.importance import ImportanceWeights

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


def weight_details(
    weights: Weights, model: ImportanceWeights, features: object
) -> dict[str, float]:
    """The weights in numbers.

    Args:
        weights: ``(n,)`` as they are used.
        model: What gave them.
        features: ``(n, d)`` of the same samples.
    """
    return {
        "effective_sample_size": effective_sample_size(weights),
        "mean_weight": float(weights.mean()),
        "largest_weight": float(weights.max()),
        "share_clipped": model.share_clipped(features),
        "domain_auc": model.auc_,
    }


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
