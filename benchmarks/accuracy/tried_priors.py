"""Class priors of a target estimated without labels, and ladders reweighted to them.

What was tried for ``tried.py``: the target's class prior is estimated against every set of a ladder
by BBSE (Lipton et al., 2018), RLLS (Azizzadenesheli et al., 2019) or EM (Saerens et al., 2002), the
set is weighted as if its classes were mixed so, and the logarithm of its weighted temperature is
interpolated over the mutual information of its weighted outputs. A target that has other classes
than the calibration set is then compared with sets that have the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls
from scipy.special import softmax

import shiftcal as sc

# Temperatures of which the best is taken, with a parabola between them.
GRID = np.linspace(np.log(0.5), np.log(20), 60)
# Of RLLS: how strongly weights are held near 1, divided by the number of target rows.
RLLS_RIDGE = 1.0
EM_STEPS = 200

Estimate = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def bbse(probs: np.ndarray, labels: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weights of the classes, not negative, from the confusions of predicted classes."""
    confusion, seen = _confusion(probs, labels), _predicted(target)
    return _fair(nnls(confusion, seen)[0], labels)


def rlls(probs: np.ndarray, labels: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The same with a ridge towards weights of 1, larger for fewer target rows."""
    confusion, seen = _confusion(probs, labels), _predicted(target)
    k = confusion.shape[1]
    ridge = np.sqrt(RLLS_RIDGE / len(target)) * np.eye(k)
    step, *_ = np.linalg.lstsq(
        np.vstack([confusion, ridge]),
        np.concatenate([seen - confusion.sum(axis=1), np.zeros(k)]),
        rcond=None,
    )
    return _fair(np.maximum(1 + step, 0), labels)


def em(probs: np.ndarray, labels: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weights that make the target's outputs, as posteriors of the set's prior, most likely."""
    del probs
    prior = np.bincount(labels, minlength=target.shape[1]) / len(labels)
    weights = np.ones(target.shape[1])
    for _ in range(EM_STEPS):
        posterior = target * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = posterior.mean(axis=0) / np.maximum(prior, 1e-12)
    return _fair(weights, labels)


def reweighted_ladder(
    ladder: sc.SurrogateBank, temperatures: list[float], estimate: Estimate
) -> Callable[[np.ndarray], float]:
    """From a target's logits to log T: interpolated over MI of sets that are weighted to it.

    Args:
        ladder: Labelled sets of one corruption.
        temperatures: Of each set; for EM, outputs are calibrated with it first.
        estimate: Gives the weights of the classes from a set's probabilities and labels and the
            target's probabilities.
    """
    sets = [
        (_softmax(s.logits), _softmax(s.logits, t), s.labels, _losses(s.logits, s.labels), t)
        for s, t in zip(ladder, temperatures, strict=True)
    ]

    def say(logits: np.ndarray) -> float:
        raw = _softmax(logits)
        at, log_t = [], []
        for probs, calibrated, labels, losses, t in sets:
            by_class = estimate(calibrated, labels, _softmax(logits, t))
            weights = by_class[labels] / by_class[labels].sum()
            at.append(_mutual_information(probs, weights))
            log_t.append(_least(weights @ losses))
        order = np.argsort(at)
        own = _mutual_information(raw, np.full(len(raw), 1 / len(raw)))
        return float(np.interp(own, np.array(at)[order], np.array(log_t)[order]))

    return say


def _softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    return softmax(logits.astype(np.float64) / temperature, axis=1)


def _confusion(probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Share of all rows that are of class ``j`` and predicted as ``i``."""
    k = probs.shape[1]
    found = np.zeros((k, k))
    np.add.at(found, (probs.argmax(axis=1), labels), 1 / len(labels))
    return found


def _predicted(probs: np.ndarray) -> np.ndarray:
    return np.bincount(probs.argmax(axis=1), minlength=probs.shape[1]) / len(probs)


def _fair(weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Weights with mean 1 over the rows; 1 each if none is left."""
    mean = weights[labels].mean()
    return weights / mean if mean > 0 else np.ones_like(weights)


def _mutual_information(probs: np.ndarray, weights: np.ndarray) -> float:
    each = -np.where(probs > 0, probs * np.log(np.maximum(probs, 1e-300)), 0).sum(axis=1)
    mean = weights @ probs
    return float(-(mean * np.log(np.maximum(mean, 1e-300))).sum() - weights @ each)


def _losses(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """NLL of every row at every temperature of the grid."""
    z = logits.astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    own = z[np.arange(len(z)), labels]
    columns = [np.log(np.exp(z / t).sum(axis=1)) - own / t for t in np.exp(GRID)]
    return np.column_stack(columns)


def _least(losses: np.ndarray) -> float:
    i = int(np.clip(losses.argmin(), 1, len(losses) - 2))
    before, at, after = losses[i - 1 : i + 2]
    bend = before - 2 * at + after
    step = (before - after) / (2 * bend) if bend > 0 else 0.0
    return float(GRID[i] + np.clip(step, -1, 1) * (GRID[1] - GRID[0]))
