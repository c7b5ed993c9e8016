"""Data whose truth is known, and plain versions of what maps are judged by."""

from __future__ import annotations

import warnings

import numpy as np

from shiftcal.errors import FitWarning


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


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


def difficult(k, dtype=np.float32):
    """Logits far apart and near, large and small, tied and flat."""
    rng = np.random.default_rng(4)
    rows = [spread * rng.standard_normal((30, k)) for spread in (1e-3, 0.3, 3.0, 30.0)]
    rows += [rows[2] + 1000, rows[2] - 1000, np.zeros((1, k)), np.eye(k) * 300, -np.eye(k) * 50]
    tied = rows[2].copy()
    tied[:, -1] = tied.max(axis=1)
    return np.concatenate([*rows, tied]).astype(dtype)


def next_to_many(k, temperature):
    """Many small numbers next to a large one, of whose sum float32 loses the last digits."""
    z = 0.3 * np.random.default_rng(0).standard_normal((200, k))
    z[:, 5] = 2 + np.log(k)
    return (z * temperature).astype(np.float32)


def draw_logits(n: int, k: int, *, temperature: float, seed: int, spread: float = 2.5):
    """Logits whose true temperature is known: labels are drawn from softmax(z / temperature)."""
    rng = np.random.default_rng(seed)
    calibrated = spread * rng.standard_normal((n, k))
    probs = np.exp(calibrated - calibrated.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return calibrated * temperature, labels
