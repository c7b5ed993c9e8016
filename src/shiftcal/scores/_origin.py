"""Which model scores came from, as far as they say so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shiftcal.errors import FileError
from shiftcal.scores.npz import read_member


def model_digest(origin: Mapping[str, Any] | None) -> str | None:
    """A digest of the model and its preprocessing; ``None`` if the origin does not say which.

    Args:
        origin: How a bank or a scores file was made.
    """
    try:
        model = origin["model"]  # type: ignore[index]
        told = [model["fingerprint"], model["preprocessing"]]
    except (KeyError, TypeError):
        return None
    return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()


def model_digest_of_file(path: Path) -> str | None:
    """The same of a scores file; ``None`` for those that were not written by ``shiftcal score``."""
    if path.suffix.lower() != ".npz":
        return None
    try:
        return model_digest(json.loads(str(read_member(path, "origin"))))
    except (FileError, ValueError, RecursionError):
        return None
