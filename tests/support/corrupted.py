"""Corrupting arrays in tests without the checks of the public function."""

from __future__ import annotations

import numpy as np

from shiftcal import corruptions
from shiftcal.corruptions.corruption import run


def corrupted(images, name, severity, table, *, seed=0, threads=1, first_index=0):
    """Images ``(n, h, w, 3)`` corrupted; ``name`` may also be a corruption."""
    corruption = corruptions.get(name)() if isinstance(name, str) else name
    out = np.empty_like(images)
    run(
        corruption,
        images,
        out,
        severity=severity,
        table=table,
        seed=seed,
        first_index=first_index,
        threads=threads,
    )
    return out
