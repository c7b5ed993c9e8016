"""A ladder whose truth is known: the same samples, with the signal shrunk step by step."""

from __future__ import annotations

import numpy as np

from shiftcal import SurrogateBank

STEPS = (1.3, 1.1, 0.9, 0.7, 0.5, 0.3)


def draw(n: int, strength: float, *, seed: int, k: int = 6):
    """Logits of an over-confident model that sees the right class less well as strength falls.

    With unit noise and a signal of 2.5 * strength the log-odds of the classes are the noisy signal
    times 2.5 * strength, so the true temperature is 3 / (2.5 * strength).
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    evidence = rng.standard_normal((n, k))
    evidence[np.arange(n), labels] += 2.5 * strength
    return 3.0 * evidence, labels


def make_bank(n: int = 1500, *, seed: int = 11, **options) -> SurrogateBank:
    """Clean and five harder sets of the same size."""
    sets = [draw(n, strength, seed=seed) for strength in STEPS]
    logits = [z for z, _ in sets]
    return SurrogateBank.from_arrays(logits, sets[0][1], corruption="fading", **options)
