"""Which monitor a running state belongs to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from shiftcal._persistence.coding import Arrays, encode
from shiftcal.errors import InputError
from shiftcal.monitoring._running import FORMAT, VERSION, Running, from_plain


def digest(fitted: Any) -> str:
    """A digest of all values, to the last bit."""
    arrays: Arrays = {}
    text = json.dumps(encode(fitted, arrays), sort_keys=True)
    made = hashlib.sha256(text.encode())
    for array in arrays.values():
        made.update(f"{array.dtype.str}{array.shape}".encode())
        made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()


def unpacked(state: object, monitor: str) -> Running:
    """The running state in what ``state_dict`` gave; not checked yet to fit the window.

    Args:
        state: From ``state_dict``, perhaps through JSON.
        monitor: Digest of the monitor that is to go on from it.

    Raises:
        InputError: If it is something else, newer, or of another monitor.
    """
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        got = state.get("format") if isinstance(state, Mapping) else type(state).__name__
        raise InputError(
            f"a monitor's state must be what state_dict gave, of format {FORMAT!r}; got {got!r}."
        )
    if state.get("version") != VERSION:
        raise InputError(
            f"a monitor's state must be of version {VERSION}; this one has version "
            f"{state.get('version')!r}. Read it with the shiftcal that wrote it."
        )
    if state.get("monitor") != monitor:
        raise InputError(
            "this state is that of another monitor: of another bank, method, window or limits. "
            "Go on with the monitor that it was taken from, as save() keeps it, or begin anew."
        )
    return from_plain(state.get("running"))
