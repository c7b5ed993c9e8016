"""Conditional adversarial adaptation: features crossed with predictions, and their domain."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shiftcal.adaptation._torch import functional, torch
from shiftcal.adaptation.losses._joined import joined


def outer(probabilities: Any, features: Any) -> Any:
    """Every probability of a row times every feature, ``(b, k * d)``, class by class.

    It is linear in the features: reverse their gradient before, where there are fewer numbers.

    Args:
        probabilities: ``(b, k)``.
        features: ``(b, d)``.
    """
    return torch.bmm(probabilities.unsqueeze(2), features.unsqueeze(1)).flatten(1)


def entropy_weights(probabilities: Any) -> Any:
    """``1 + exp(-H(p))`` for every row, divided by their mean; no gradient goes through them.

    Args:
        probabilities: Of source and target together, ``(n, k)``.

    Returns:
        ``(n,)``: most for a sure row, and at least half of that.
    """
    with torch.no_grad():
        weights = torch.special.xlogy(probabilities, probabilities).sum(1).exp_().add_(1)
        return weights.div_(weights.mean())


def domain_loss(logits_source: Any, logits_target: Any, weights: Any = None) -> Any:
    """Cross-entropy of a discriminator that should say 1 for the source and 0 for the target.

    ``mean w log(1 + exp(∓z))`` over all rows, which for equally many of both is the mean of the
    source's and the target's own averages.

    Args:
        logits_source: What the discriminator gives before the sigmoid, ``(b, 1)`` or ``(b,)``.
        logits_target: The same for the target.
        weights: ``(2b,)``, those of the source first, with mean 1; ``None`` is 1 for each.
    """
    if weights is not None:
        weights = weights.flatten()
    logits = joined(logits_source, logits_target).flatten()
    wanted = _domains(len(logits_source), len(logits_target), logits.dtype, logits.device)
    return functional.binary_cross_entropy_with_logits(logits, wanted, weights)


@lru_cache(maxsize=16)
def _domains(n_source: int, n_target: int, dtype: Any, device: Any) -> Any:
    # Kept for the steps to come, so it must be no tensor of an inference mode.
    with torch.inference_mode(False):
        ones = torch.ones(n_source, dtype=dtype, device=device)
        return torch.cat((ones, ones.new_zeros(n_target)))
