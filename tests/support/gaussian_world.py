"""A classifier with Gaussian logits, corruptions that blur, flatten or bend it, and class priors.

The temperature that is right for a sample is found from its labels by scipy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from shiftcal import SurrogateBank, SurrogateSet

K = 6
SEVERITIES = (1, 3, 5)
CORRUPTIONS = ("noise", "haze", "drift", "blend")


def outputs(n, corruption="none", severity=0, *, seed, prior=None, k=K):
    """Logits and labels; every corruption takes some of the signal, and does one thing more."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, n, p=prior)
    hard = {"noise": 0.13, "haze": 0.11, "drift": 0.10, "blend": 0.12}.get(corruption, 0.0)
    evidence = (1 - hard * severity) * 3.5 * np.eye(k)[labels] + rng.standard_normal((n, k))
    logits = 2.5 * evidence
    if corruption == "noise":
        logits *= 1 + 0.02 * severity
    if corruption == "haze":
        logits *= 1 - 0.02 * severity
    if corruption == "drift":  # a collapse onto one class
        logits[:, 0] += 0.5 * severity
    if corruption == "blend":
        logits[:, 1:3] += 0.2 * severity
    return logits, labels


def world(corruptions=CORRUPTIONS, *, n=800, seed=1, k=K):
    """A bank of the clean set and every severity of these corruptions."""
    sets = [SurrogateSet(*outputs(n, seed=seed, k=k), "clean", severity=0)]
    for number, corruption in enumerate(corruptions):
        for severity in SEVERITIES:
            drawn = outputs(n, corruption, severity, seed=seed + 10 * number + severity, k=k)
            name = f"{corruption} {severity}"
            sets.append(SurrogateSet(*drawn, name, corruption=corruption, severity=severity))
    return SurrogateBank(sets)


def oracle_log_t(logits, labels):
    """Logarithm of the temperature of least NLL."""
    rows = np.arange(len(labels))

    def nll(log_t):
        return -log_softmax(logits / np.exp(log_t), axis=1)[rows, labels].mean()

    return minimize_scalar(nll, bounds=(-4.0, 4.0), options={"xatol": 1e-8}).x


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


def bank_of(sample: Sample) -> SurrogateBank:
    return SurrogateBank.from_arrays([sample.logits], sample.labels, features=sample.features)
