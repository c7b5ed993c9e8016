"""The one map that a fitted method applies to every row."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from shiftcal._persistence.coding import encode
from shiftcal._types import FitStatus
from shiftcal.errors import InputError, NotFittedError
from shiftcal.maps import Map
from shiftcal.maps.temperature import Temperature
from shiftcal.methods import Method

# Of logits on which a method and the map found in it are compared.
_SPREADS = (0.1, 1.0, 10.0)


def applied_map(fitted: object) -> Map:
    """The map of a fitted map (itself) or of a fitted and, where it needs one, adapted method.

    Raises:
        InputError: If it is neither, or applies something else than a map it holds.
        NotFittedError: If it is not fitted, or has to see a target first.
    """
    if not isinstance(fitted, Map | Method):
        given = fitted.__name__ if isinstance(fitted, type) else type(fitted).__name__
        raise InputError(
            f"what is exported must be a fitted method or map; got {given}. A saved one is read "
            "with shiftcal.load."
        )
    if not hasattr(fitted, "n_classes_"):
        raise NotFittedError(
            f"this {type(fitted).__name__} is not fitted yet; call fit before it is exported."
        )
    return fitted if isinstance(fitted, Map) else _map_of(fitted)


def _map_of(method: Method) -> Map:
    if method.uses_target and method.selection_ is None:
        raise NotFittedError(
            f"{method.name()} has not seen a target yet, and what it exports depends on it; call "
            "adapt with unlabelled logits of the data to be calibrated first."
        )
    found = _held(method)
    if found is None or not _same(found, method):
        raise InputError(
            f"what is exported must apply one map to every row; {method.name()} applies something "
            "that no map of it gives. Export the map alone, or use the method in Python."
        )
    return found


def _held(method: Method) -> Map | None:
    """The map the method holds for its choice, or one of the temperature it chose."""
    own = getattr(method, "map_", None)
    selection = method.selection_
    several = getattr(method, "maps_", None)
    if own is None and several is not None and selection and selection.index is not None:
        own = several[selection.index]
    if isinstance(own, Map):
        return own
    chosen = 1.0 if selection is None else selection.temperature
    if chosen is None:
        return None
    made = Temperature()
    made.temperature_, made.n_classes_ = float(chosen), method.n_classes_
    made.status_ = FitStatus("converged")
    return made


def _same(found: Map, method: Method) -> bool:
    logits = drawn_logits(method.n_classes_)
    wanted = method._apply(logits)
    return bool(np.allclose(found.apply_checked(logits), wanted, rtol=0, atol=1e-12))


def drawn_logits(k: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Rows of logits ``(n, k)`` from flat to far apart, with ties, always the same."""
    rng = np.random.default_rng(0)
    drawn = [spread * rng.standard_normal((20, k)) for spread in _SPREADS]
    # An added constant is nothing to a map, and a test of arithmetic; so are many small numbers
    # beside a large one.
    sure = drawn[0].copy()
    sure[:, 0] += 2 + np.log(k)
    rows = [*drawn, sure, np.zeros((1, k)), drawn[-1][:5] + 100]
    return np.concatenate(rows).astype(np.float32)


def digest_of(applied: Map) -> str:
    """SHA-256 of the kind of a map and of all it has learnt."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    node = encode(applied, arrays)
    made = hashlib.sha256(json.dumps([node["name"], node["fitted"]], sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        made.update(f"{name} {array.dtype.str} {array.shape}".encode())
        made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()
