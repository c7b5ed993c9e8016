"""What ``run.json`` says: of the run that ended last, and what it knows from those before."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.studies.archive import Split

_PACKAGES = ("shiftcal", "numpy", "scipy", "scikit-learn", "numba")


def read_about(file: Path) -> dict[str, Any]:
    """What the run before wrote; nothing if there was none, or its file is damaged."""
    try:
        told = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def left_out_of(told: dict[str, Any]) -> tuple[str, ...]:
    """What the run before left out."""
    given = told.get("left_out")
    return tuple(str(each) for each in given) if isinstance(given, list) else ()


def scoring_of(told: dict[str, Any], *, scored: int, seconds: float) -> dict[str, Any]:
    """How many images were scored and how long that took, by the last run that scored any.

    Args:
        told: By the run before.
        scored: Images that this run scored.
        seconds: What its scoring took.
    """
    if not scored and isinstance(told.get("images_scored"), int):
        scored, seconds = told["images_scored"], told.get("scoring_seconds", seconds)
    return {"images_scored": scored, "scoring_seconds": seconds}


def where_it_ran() -> dict[str, Any]:
    """Versions and machine."""
    return {
        "versions": {"python": platform.python_version(), **{p: version(p) for p in _PACKAGES}},
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
    }


def digests_of(split: Split) -> dict[str, str]:
    """SHA-256 of the rows of a split, as little-endian 64-bit integers."""
    return {"calibration": _sha256(split.calibration), "test": _sha256(split.test)}


def _sha256(rows: NDArray[np.intp]) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows, dtype="<i8").tobytes()).hexdigest()
