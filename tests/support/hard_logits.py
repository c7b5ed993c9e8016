"""Logits that are hard on arithmetic: far apart and near, large and small, tied, at an edge."""

from __future__ import annotations

import copy

import numpy as np
from map_data import softmax


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


def at_an_edge(histogram):
    """A histogram with an edge where a row's confidence lies once it is rounded, and the row."""
    fitted, z = copy.deepcopy(histogram), np.array([[2.7, 1.1, 0.0, 1.2, -1.0]])
    while True:
        z[0, 0] += 0.001
        c = softmax(z).max()
        if c - np.round(c, 12) > 3e-13:
            fitted.edges_, fitted.accuracy_ = np.array([np.round(c, 12)]), np.array([0.4, 0.9])
            return fitted, z
