"""Logits whose true temperature is known."""

from __future__ import annotations

import numpy as np


def draw_logits(n: int, k: int, *, temperature: float, seed: int, spread: float = 2.5):
    """Logits whose true temperature is known: labels are drawn from softmax(z / temperature)."""
    rng = np.random.default_rng(seed)
    calibrated = spread * rng.standard_normal((n, k))
    probs = np.exp(calibrated - calibrated.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return calibrated * temperature, labels
