"""The only input validation. Everything below this layer trusts what it is given.

Every function returns the checked array and never changes or aliases-and-changes its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._registry import suggest
from shiftcal._types import Confidence, Correct, Floats, Labels, Logits, Probs, Weights
from shiftcal.errors import InputError, UnknownName

# Rows of probabilities may miss one by this much: float16 softmax over 1000 classes does.
SUM_TOLERANCE = 5e-3
# A probability of zero has no logarithm; float32 softmax underflows here anyway.
SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)
# Elements looked at in one go, so that checks need no memory worth mentioning.
_BLOCK = 1 << 18


def check_scores(scores: object, *, input: str = "logits", k: int | None = None) -> Logits:
    """Logits of shape ``(n, k)`` from what a model gave, whichever kind it is.

    Args:
        scores: Array-like ``(n, k)``.
        input: What the numbers are: ``"logits"`` or ``"probabilities"``. Probabilities become
            ``log(max(p, 1.2e-38))``, which is the same as logits for everything shiftcal does.
        k: Number of classes they must have.

    Raises:
        InputError: If they are not that kind, not finite, empty, or of another shape.
    """
    kind = check_choice(input, ("logits", "probabilities"), name="input")
    if kind == "probabilities":
        probs = check_probs(scores, k=k)
        return np.log(np.maximum(probs, SMALLEST_PROBABILITY))
    return check_logits(scores, k=k)


def check_logits(logits: object, *, k: int | None = None) -> Logits:
    """Finite logits ``(n, k)`` with ``n >= 1`` and ``k >= 2``, in float32 or float64."""
    z = _matrix(logits, name="logits", k=k)
    if _looks_like_probabilities(z):
        raise InputError(
            "these logits are probabilities: every row is non-negative and sums to 1. "
            'Say input="probabilities" if that is what they are; if they really are logits, '
            "add any constant to them first (softmax ignores it)."
        )
    return z


def check_probs(probs: object, *, k: int | None = None) -> Probs:
    """Probabilities ``(n, k)`` as float64: each in [0, 1], every row summing to one.

    Rows may miss one by 0.005 (half precision does); they are divided by their sum.
    """
    p = _matrix(probs, name="probabilities", k=k).astype(np.float64)
    low, high = float(p.min()), float(p.max())
    if low < 0 or high > 1 + SUM_TOLERANCE:
        raise InputError(
            f"probabilities must lie in [0, 1]; these go from {low:.4g} to {high:.4g}. "
            'If they are logits, say input="logits".'
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


def check_labels(labels: object, *, n: int, k: int) -> Labels:
    """Integer labels ``(n,)`` in ``0..k-1``."""
    y = to_array(labels, name="labels")
    if y.ndim == 2 and y.shape == (n, k):
        raise InputError(
            f"labels must be class indices of shape ({n},); got shape {y.shape}. "
            "If they are one-hot, pass labels.argmax(axis=1)."
        )
    if y.ndim != 1:
        raise InputError(
            f"labels must have shape ({n},); got shape {y.shape}. Pass labels.ravel() "
            "if it is a column."
        )
    if y.dtype.kind not in "iufb":
        raise InputError(
            f"labels must be class indices 0..{k - 1}; got values like {y.flat[0]!r}. "
            "Map names to their column first, for instance with "
            "np.array([classes.index(name) for name in labels])."
            if y.size
            else f"labels must be class indices 0..{k - 1}; got none."
        )
    if len(y) != n:
        raise InputError(
            f"labels must have one entry per row: {n} rows, {len(y)} labels. "
            "Check that both come from the same samples in the same order."
        )
    _refuse_fractions(y)
    out = y.astype(np.intp, copy=False)
    low, high = int(out.min()), int(out.max())
    if low < 0 or high >= k:
        hint = " If yours start at 1, pass labels - 1." if low == 1 and high == k else ""
        raise InputError(
            f"labels must lie in 0..{k - 1}, one per column of logits; "
            f"these go from {low} to {high}.{hint}"
        )
    return out


def check_weights(sample_weight: object, *, n: int) -> Weights | None:
    """Weights ``(n,)``, finite, non-negative and not all zero; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    name = "sample_weight"
    w = _finite(_vector(sample_weight, name=name, n=n), name).astype(np.float64)
    if w.min() < 0:
        raise InputError(
            f"sample_weight must not be negative; row {int(w.argmin())} has {w.min():.4g}."
        )
    if not w.any():
        raise InputError("sample_weight must not be zero everywhere; there is nothing to fit then.")
    return w


def check_confidence(confidence: object, *, name: str = "confidence") -> Confidence:
    """Confidences ``(n,)`` in [0, 1], in float32 or float64."""
    c = _vector(confidence, name=name)
    # One look, block by block, decides everything: a NaN makes both ends NaN.
    ends = np.array([(block.min(), block.max()) for _, block in _blocks(c)])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    if not (low >= 0 and high <= 1):
        _finite(c, name)
        raise InputError(
            f"{name} must lie in [0, 1]; these go from {low:.4g} to {high:.4g}. "
            "Pass the probability of the predicted class, as a fraction."
        )
    return c


def check_correct(correct: object, *, n: int) -> Correct:
    """Correctness ``(n,)`` of booleans, or of zeros and ones."""
    r = to_array(correct, name="correct")
    if r.shape != (n,):
        raise InputError(
            f"correct must have one entry per confidence, shape ({n},); got shape {r.shape}."
        )
    if r.dtype == np.bool_:
        return r
    if r.dtype.kind not in "iuf" or not ((r == 0) | (r == 1)).all():
        raise InputError(
            "correct must hold True and False (or 1 and 0), whether the predicted class was "
            "right. From labels: correct = probs.argmax(axis=1) == labels."
        )
    return r.astype(np.bool_)


def check_features(features: object, *, name: str, n: int | None = None) -> Floats:
    """Finite features ``(n, d)`` with at least one row."""
    f = to_array(features, name=name)
    if f.ndim != 2 or 0 in f.shape:
        raise InputError(f"{name} must have shape (n, d), not empty; got shape {f.shape}.")
    if n is not None and f.shape[0] != n:
        raise InputError(f"{name} must have one row per sample: {n} samples, {f.shape[0]} rows.")
    return _finite(_as_float(f, name), name)


def check_choice(value: object, allowed: Sequence[str], *, name: str) -> Any:
    """``value`` if it is one of ``allowed``."""
    if isinstance(value, str) and value in allowed:
        return value
    raise UnknownName(
        f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}. "
        f"{suggest(value, allowed)}"
    )


def check_count(value: object, *, name: str, least: int = 1) -> int:
    """``value`` as an int of at least ``least``."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least:
        return int(value)
    raise InputError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def check_fraction(value: object, *, name: str) -> float:
    """``value`` as a float strictly between 0 and 1."""
    if isinstance(value, (int, float, np.number)) and 0 < float(value) < 1:
        return float(value)
    raise InputError(f"{name} must lie strictly between 0 and 1; got {value!r}.")


def check_not_negative(value: object, *, name: str) -> float:
    """``value`` as a finite float of at least 0."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if number and 0 <= float(value) < np.inf:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise InputError(f"{name} must be a number of at least 0; got {value!r}.")


def check_range(value: object, *, name: str) -> tuple[float, float]:
    """``value`` as two positive finite numbers, the smaller first."""
    try:
        low, high = (float(end) for end in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low = high = 0.0
    if 0 < low < high < np.inf:
        return low, high
    raise InputError(
        f"{name} must be two positive numbers, the smaller first, such as (0.01, 100); "
        f"got {value!r}."
    )


def to_array(values: object, *, name: str) -> NDArray[Any]:
    """``values`` as a numpy array, whatever holds them, or an error that names them."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name} must not be masked; fill or drop the masked entries first.")
    try:
        return np.asarray(values)
    except Exception as error:  # torch, jax and others raise what they like here
        raise InputError(
            f"{name} could not be read as an array: {error} "
            "A torch tensor goes in as tensor.detach().cpu().numpy()."
        ) from error


def _matrix(values: object, *, name: str, k: int | None) -> Logits:
    x = to_array(values, name=name)
    if x.ndim == 1 and name == "logits":
        raise InputError(
            f"logits must have shape (n, k) with k >= 2; got shape {x.shape}. "
            "For a binary score s, pass np.column_stack([np.zeros_like(s), s])."
        )
    if x.ndim != 2:
        raise InputError(f"{name} must have shape (n, k); got shape {x.shape}.")
    if x.shape[0] == 0:
        raise InputError(f"{name} must have at least one row; this set is empty.")
    if x.shape[1] < 2:
        raise InputError(
            f"{name} must have a column per class and at least two; got shape {x.shape}. "
            "For a binary probability p, pass np.column_stack([1 - p, p])."
        )
    if k is not None and x.shape[1] != k:
        raise InputError(
            f"{name} must have {k} columns, one per class it was fitted with; got {x.shape[1]}."
        )
    return _finite(_as_float(x, name), name)


def _vector(values: object, *, name: str, n: int | None = None) -> Floats:
    x = to_array(values, name=name)
    if x.ndim != 1 or (n is not None and len(x) != n):
        wanted = "(n,)" if n is None else f"({n},)"
        raise InputError(f"{name} must have shape {wanted}; got shape {x.shape}.")
    if len(x) == 0:
        raise InputError(f"{name} must have at least one entry; this set is empty.")
    return _as_float(x, name)


def _as_float(x: NDArray[Any], name: str) -> Floats:
    """Float32 or float64 as it came; halves and integers are widened, exactly."""
    if x.dtype.kind not in "iufb":
        raise InputError(f"{name} must be real numbers; got dtype {x.dtype}.")
    if x.dtype == np.float16:
        return x.astype(np.float32)
    # The plain type, even over an equal one: numpy's fast paths compare types by identity.
    return np.ascontiguousarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)


def _finite(x: Floats, name: str) -> Floats:
    for start, block in _blocks(x):
        good = np.isfinite(block)
        if not good.all():
            row = start + int(np.argwhere(~good)[0][0])
            value = block[row - start][~good[row - start]] if x.ndim == 2 else [block[row - start]]
            raise InputError(
                f"{name} must be finite; row {row} holds {float(value[0])}. Drop such rows, or "
                "find out why the model gave them. (Infinite logits are often the logarithm of a "
                'zero probability: pass the probabilities with input="probabilities".)'
            )
    return x


def _blocks(x: Floats) -> Iterator[tuple[int, Floats]]:
    rows = max(1, _BLOCK // max(1, x.size // len(x)))
    for start in range(0, len(x), rows):
        yield start, x[start : start + rows]


def _looks_like_probabilities(z: Logits) -> bool:
    for _, block in _blocks(z):
        if (block < 0).any() or (np.abs(block.sum(axis=1) - 1) > SUM_TOLERANCE).any():
            return False
    return True


def _refuse_fractions(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.floor(y)).all()):
        bad = int(np.argmax(~np.isfinite(y) | (y != np.floor(y))))
        raise InputError(f"labels must be whole numbers; entry {bad} is {y[bad]}.")
