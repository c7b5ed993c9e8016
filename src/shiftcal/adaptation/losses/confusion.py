"""Minimum class confusion: which classes the target's predictions mix up."""

from __future__ import annotations

from typing import Any

from shiftcal.adaptation._torch import torch
from shiftcal.adaptation.losses._analytic import Outcome, analytic


def class_confusion(logits: Any, temperature: float = 2.5) -> Any:
    """How much of a class's predictions goes to other classes, on average over the classes.

    With ``p = softmax(z / T)`` and weights ``w = 1 + exp(-H(p))`` that count sure rows more, and
    through which no gradient goes, classes ``j`` and ``l`` are confused by ``C = Pᵀ diag(w) P``.
    Its rows, divided by their sums, are probabilities; the loss is the mean over the classes of
    what lies off the diagonal. Rows of ``P`` sum to 1, so it is

        ``1 - mean_j (sum_i w_i p_ij²) / (sum_i w_i p_ij)``.

    0 if every row is sure of one class and every class has such rows, ``1 - 1/k`` if all
    probabilities are equal. A class that no row gives any probability counts as confused.

    Args:
        logits: Of the target, ``(b, k)``.
        temperature: ``T``; a high one keeps sure rows from hiding what they might be mixed up with.
    """

    def rule(z: Any) -> Outcome:
        p = (z / temperature).softmax(1)
        w = torch.special.xlogy(p, p).sum(1).exp_().add_(1)
        mass = p.t().mv(w).clamp_min_(torch.finfo(p.dtype).tiny)
        kept = p.square().t().mv(w).div_(mass)
        slope = torch.sub(kept, p, alpha=2).div_(mass).mul_(w.unsqueeze(1)).mul_(p)
        slope.sub_(p * slope.sum(1, keepdim=True)).mul_(1 / (p.shape[1] * temperature))
        return 1 - kept.mean(), (slope,)

    return analytic(rule, logits)
