"""Covariate shift whose truth is known: Gaussian features, temperature a function of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shiftcal import SurrogateBank


class Sample(NamedTuple):
    logits: np.ndarray
    labels: np.ndarray
    features: np.ndarray

    def rows(self, index):
        return Sample(self.logits[index], self.labels[index], self.features[index])


def draw_domain(
    n: int, shift: float, *, seed: int, d: int = 3, k: int = 4, log_t: float = 0.5
) -> Sample:
    """Features from N((shift, 0, 0), I); logits too large by exp(log_t + f_0 / 2).

    The density ratio to the domain of shift zero is ``exp(shift f_0 - shift² / 2)``. With a
    positive shift the target is more over-confident than the source.
    """
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d))
    features[:, 0] += shift
    calibrated = 2.0 * rng.standard_normal((n, k))
    probs = np.exp(calibrated - calibrated.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return Sample(calibrated * np.exp(log_t + features[:, :1] / 2), labels, features)


def true_log_ratio(features: np.ndarray, shift: float) -> np.ndarray:
    return shift * features[:, 0] - shift**2 / 2


def bank_of(sample: Sample) -> SurrogateBank:
    return SurrogateBank.from_arrays([sample.logits], sample.labels, features=sample.features)
