"""Features: what a layer gave for each image, as one row."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.errors import InputError, UnknownName


def as_features(values: Any, *, name: str) -> NDArray[Any]:
    """One row an image: ``(n, d)`` as it is, of maps ``(n, c, h, w)`` the mean over positions.

    Raises:
        InputError: For any other shape.
    """
    array = np.asarray(values)
    if array.ndim == 4:
        wide = np.float64 if array.dtype == np.float64 else np.float32
        array = array.mean(axis=(2, 3), dtype=wide)
    if array.ndim != 2:
        raise InputError(
            f"features_from must name something of shape (n, d), or (n, c, h, w) to be averaged "
            f"over positions; {name!r} gives shape {array.shape}. Name another layer."
        )
    return array


def unknown_layer(name: str, known: Sequence[str], *, what: str) -> UnknownName:
    """The error for a name that is not among those of a network.

    Args:
        name: What was asked for.
        known: Every name there is, in the order of the network.
        what: What the names are names of, such as ``"a layer of the module"``.
    """
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
    listed = "nearest are" if near else "last of them are"
    shown = ", ".join(map(repr, near or known[-8:])) or "none"
    return UnknownName(
        f"features_from must be the name of {what}; got {name!r}. There are {len(known)}, and the "
        f"{listed} {shown}."
    )


def picked(output: Any, name: str) -> tuple[Any, Any]:
    """Logits and features among what a network returns.

    Args:
        output: A tuple or list, whose first is the logits, or a dict, whose ``"logits"`` are.
        name: The place in the one, such as ``"1"``, or the key in the other.

    Raises:
        UnknownName: If there is no such thing in it.
    """
    if isinstance(output, dict):
        known, found = list(map(str, output)), output
    else:
        several = list(output) if isinstance(output, tuple | list) else [output]
        known = [str(place) for place in range(len(several))]
        found = dict(zip(known, several, strict=True))
    logits = "logits" if isinstance(output, dict) else "0"
    if name not in known or name == logits or logits not in known:
        raise unknown_layer(
            name, [one for one in known if one != logits], what="a second output of the network"
        )
    return found[logits], found[name]
