"""Margin disparity discrepancy: where an adversarial head leaves the main one."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import functional
from shiftcal.adaptation.losses._analytic import widened

# Keeps the logarithm finite where the adversarial head is sure of the main head's class.
_SHIFT = 1e-6


def margin_disparity(
    source_logits: Any,
    source_adv: Any,
    target_logits: Any,
    target_adv: Any,
    *,
    margin: float = 4.0,
) -> Any:
    """What the adversarial head minimises, to agree on the source and to disagree on the target.

    With ``y`` the class that the main head predicts, through which no gradient goes, and ``p`` the
    adversarial head's softmax,

        ``-margin mean_s log p[y] - mean_t log(1 - p[y] + 1e-6)``.

    Args:
        source_logits: Of the main head, ``(b, k)``.
        source_adv: Of the adversarial head.
        target_logits: Of the main head, for as many rows.
        target_adv: Of the adversarial head.
        margin: What agreement on the source counts.
    """
    agreed = functional.cross_entropy(widened(source_adv), source_logits.argmax(1))
    p = widened(target_adv).softmax(1)
    # 1 - p[y] as the sum of the other probabilities, which near p[y] = 1 keeps its digits.
    left = p.scatter(1, target_logits.argmax(1, keepdim=True), 0).sum(1)
    return margin * agreed - (left + _SHIFT).log().mean()
