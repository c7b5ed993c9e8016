"""From whatever holds numbers to a contiguous array of finite floats, or an error that says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Floats
from shiftcal.errors import InputError

# Elements looked at in one go, so that checks need no memory worth mentioning.
_BLOCK = 1 << 18
# Beyond this even differences of logits are of no use, and their squares overflow.
LARGEST_LOGIT = 1e30
_TORCH = " A torch tensor goes in as tensor.detach().cpu().float().numpy()."
_READ_FIRST = " Read a file first, with shiftcal.read_scores."
_HINTS = {
    "Scores": " Pass its logits().",
    "str": _READ_FIRST,
    "PosixPath": _READ_FIRST,
    "WindowsPath": _READ_FIRST,
}
_BINARY = {
    "logits": " For a binary score s, pass np.column_stack([np.zeros_like(s), s]).",
    "probabilities": " For a binary probability p, pass np.column_stack([1 - p, p]).",
}
_INFINITE_LOGITS = (
    " (Infinite logits are often the logarithm of a zero probability: pass the probabilities "
    'with input="probabilities".)'
)


def to_array(values: object, *, name: str) -> NDArray[Any]:
    """``values`` as a numpy array, whatever holds them, or an error that names them."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name} must not be masked; fill or drop the masked entries first.")
    try:
        array = np.asarray(values)
    except Exception as error:  # torch, jax and others raise what they like here
        hint = _TORCH if hasattr(values, "detach") else ""
        raise InputError(f"{name} could not be read as an array: {error}.{hint}") from error
    if array.ndim == 0:
        kind = "a single value" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"{name} must be an array; got {kind}.{_HINTS.get(kind, '')}")
    return array


def matrix(values: object, *, name: str, k: int | None) -> Floats:
    """Finite numbers ``(n, k)``, with ``k`` columns if it is given."""
    x = to_array(values, name=name)
    if x.ndim != 2:
        hint = _BINARY.get(name, "") if x.ndim == 1 else ""
        raise InputError(f"{name} must have shape (n, k) with k >= 2; got shape {x.shape}.{hint}")
    if x.shape[0] == 0:
        raise InputError(f"{name} must have at least one row; this set is empty.")
    if x.shape[1] < 2:
        raise InputError(
            f"{name} must have a column per class and at least two; got shape {x.shape}."
            f"{_BINARY.get(name, '')}"
        )
    if k is not None and x.shape[1] != k:
        raise InputError(
            f"{name} must have {k} columns, one per class it was fitted with; got {x.shape[1]}."
        )
    return finite(as_float(x, name), name)


def vector(values: object, *, name: str, n: int | None = None) -> Floats:
    """Numbers ``(n,)``, not checked to be finite."""
    x = to_array(values, name=name)
    if x.ndim != 1 or (n is not None and len(x) != n):
        wanted = "(n,)" if n is None else f"({n},)"
        raise InputError(f"{name} must have shape {wanted}; got shape {x.shape}.")
    if len(x) == 0:
        raise InputError(f"{name} must have at least one entry; this set is empty.")
    return as_float(x, name)


def as_float(x: NDArray[Any], name: str) -> Floats:
    """Float32 or float64 as it came; halves and integers are widened, exactly."""
    if x.dtype.kind not in "iufb":
        hint = " From pandas: frame.to_numpy(dtype=float)." if x.dtype == object else ""
        raise InputError(f"{name} must be real numbers; got dtype {x.dtype}.{hint}")
    if x.dtype == np.float16:
        return x.astype(np.float32)
    # The plain type, even over an equal one: numpy's fast paths compare types by identity.
    return np.ascontiguousarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)


def finite(x: Floats, name: str) -> Floats:
    """``x`` itself, if all of it is finite; logits must also be within ±1e30."""
    limit = LARGEST_LOGIT if name == "logits" else float(np.finfo(x.dtype).max)
    for start, block in blocks(x):
        # Two looks without a copy; a NaN makes both ends NaN, and no comparison holds then.
        if not (block.min() >= -limit and block.max() <= limit):
            _refuse(start, block, name, limit)
    return x


def _refuse(start: int, block: Floats, name: str, limit: float) -> NoReturn:
    bad = np.argwhere(~(np.abs(block) <= limit))[0]
    value = float(block[tuple(bad)])
    row = f"row {start + int(bad[0])} holds {value:g}"
    if np.isfinite(value):
        raise InputError(
            f"{name} must lie within ±{limit:g}; {row}. Subtract each row's maximum, which softmax "
            "ignores, or find out why the model gave them."
        )
    hint = _INFINITE_LOGITS if name == "logits" and np.isinf(value) else ""
    raise InputError(
        f"{name} must be finite; {row}. Drop such rows, or find out where they come from.{hint}"
    )


def blocks(x: Floats) -> Iterator[tuple[int, Floats]]:
    """Blocks of rows, each with the number of its first row."""
    rows = max(1, _BLOCK // max(1, x.size // len(x)))
    for start in range(0, len(x), rows):
        yield start, x[start : start + rows]
