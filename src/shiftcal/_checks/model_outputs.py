"""What a model gave: logits or probabilities, and features."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from shiftcal._checks.arrays import as_float, blocks, finite, matrix, to_array
from shiftcal._checks.settings import check_choice
from shiftcal._types import Floats, Logits, Probs
from shiftcal.errors import InputError, InputWarning

# Rows of probabilities may miss one by this much: float16 softmax over 1000 classes does.
SUM_TOLERANCE = 5e-3
# Rows from which on logits to be calibrated are refused if all look like probabilities: so many
# rows of real logits are never all on the simplex. Fewer could be, and must not fail where many
# pass; they are warned of.
GUARD_FROM = 10
# A probability of zero has no logarithm; float32 softmax underflows here anyway.
SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)


def check_scores(
    scores: object, *, input: str = "logits", k: int | None = None, guard_from: int = 1
) -> Logits:
    """Logits of shape ``(n, k)`` from what a model gave, whichever kind it is.

    Args:
        scores: Array-like ``(n, k)``.
        input: What the numbers are: ``"logits"`` or ``"probabilities"``. Probabilities become
            ``log(max(p, 1.2e-38))``, which is the same as logits for everything shiftcal does.
        k: Number of classes they must have.
        guard_from: Refuse logits that look like probabilities from this many rows on, and warn of
            fewer. A single row of logits can be on the simplex by chance, ten cannot.

    Raises:
        InputError: If they are not that kind, not finite, empty, or of another shape.
    """
    kind = check_choice(input, ("logits", "probabilities"), name="input")
    if kind == "probabilities":
        probs = check_probs(scores, k=k)
        return np.log(np.maximum(probs, SMALLEST_PROBABILITY))
    return check_logits(scores, k=k, guard_from=guard_from)


def check_logits(logits: object, *, k: int | None = None, guard_from: int = 1) -> Logits:
    """Finite logits ``(n, k)`` with ``n >= 1`` and ``k >= 2``, in float32 or float64."""
    z = matrix(logits, name="logits", k=k)
    if not _looks_like_probabilities(z):
        return z
    if len(z) >= guard_from:
        raise InputError(
            "these logits are probabilities: every row is non-negative and sums to 1. "
            'Say input="probabilities" if that is what they are (in a file: name the array '
            "'probabilities'); if they really are logits, add any constant to them first "
            "(softmax ignores it)."
        )
    warnings.warn(
        "these logits look like probabilities: every row is non-negative and sums to 1. "
        f"{'One is' if len(z) == 1 else f'{len(z)} are'} too few to tell, so they were taken as "
        "logits. If they are probabilities, pass np.log(p.clip(1e-38)) in place of p, or fit with "
        'input="probabilities"; if they really are logits, add any constant to them (softmax '
        "ignores it) and this is not said.",
        InputWarning,
        stacklevel=_levels_to_the_caller(),
    )
    return z


def check_probs(probs: object, *, k: int | None = None) -> Probs:
    """Probabilities ``(n, k)`` as float64: each in [0, 1], every row summing to one.

    Rows may miss one by 0.005 (half precision does); they are divided by their sum.
    """
    p = matrix(probs, name="probabilities", k=k).astype(np.float64)
    low, high = float(p.min()), float(p.max())
    if low < 0 or high > 1 + SUM_TOLERANCE:
        raise InputError(
            f"probabilities must lie in [0, 1]; these go from {low:.4g} to {high:.4g}. "
            'Logits go in with input="logits" where that can be said, and as softmax(logits) '
            "where it cannot."
        )
    sums = p.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > SUM_TOLERANCE:
        raise InputError(
            f"every row of probabilities must sum to 1; row {worst} sums to {sums[worst]:.4g}. "
            "Divide each row by its sum if the classes are exclusive."
        )
    # What is right up to rounding stays: equal probabilities in two rows must still tie.
    off = np.abs(sums - 1) > 1e-12
    p[off] /= sums[off, None]
    np.minimum(p, 1.0, out=p)
    return p


def check_features(features: object, *, name: str, n: int | None = None) -> Floats:
    """Finite features ``(n, d)`` with at least one row."""
    f = to_array(features, name=name)
    if f.ndim != 2 or 0 in f.shape:
        raise InputError(f"{name} must have shape (n, d), not empty; got shape {f.shape}.")
    if n is not None and f.shape[0] != n:
        raise InputError(f"{name} must have one row per sample: {n} samples, {f.shape[0]} rows.")
    return finite(as_float(f, name), name)


def _looks_like_probabilities(z: Logits) -> bool:
    for _, block in blocks(z):
        if (block < 0).any() or (np.abs(block.sum(axis=1) - 1) > SUM_TOLERANCE).any():
            return False
    return True


def _levels_to_the_caller() -> int:
    """How many frames above the one that asks the first outside this package is."""
    level, frame = 1, sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level
