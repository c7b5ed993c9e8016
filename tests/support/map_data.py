"""Data whose truth is known, and plain versions of what maps are judged by."""

from __future__ import annotations

import warnings

import numpy as np

from shiftcal.errors import FitWarning


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def draw(n, k, *, temperature, seed, spread=2.5):
    """Logits and labels: labels come from softmax(logits / temperature)."""
    rng = np.random.default_rng(seed)
    true = spread * rng.standard_normal((n, k))
    labels = (softmax(true).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return true * temperature, labels


def quiet_fit(estimator, *data, **options):
    """Fit without being told that the set is odd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return estimator.fit(*data, **options)


def nll(probs, labels):
    return float(-np.log(np.maximum(probs[np.arange(len(labels)), labels], 1e-300)).mean())


def equal_size_ece(confidence, correct, n_bins=15):
    order = np.argsort(confidence, kind="stable")
    gaps = [abs((confidence[rows] - correct[rows]).sum()) for rows in np.array_split(order, n_bins)]
    return sum(gaps) / len(confidence)


def top1(logits, labels):
    """Confidence and correctness of the model itself."""
    return softmax(logits).max(axis=1), (logits.argmax(axis=1) == labels).astype(float)
