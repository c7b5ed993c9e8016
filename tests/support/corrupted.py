"""Images that are the same on every machine, and corrupting them without the public checks."""

from __future__ import annotations

import hashlib

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


TABLES = ("cifar", "tiny-imagenet", "imagenet")
SMALL, LARGE = (16, 20), (45, 61)


def golden_images(height, width):
    """A smooth picture with an edge, and a rough one: (2, height, width, 3)."""
    row, column, channel = np.indices((height, width, 3))
    smooth = (row * 5 + column * 3 + channel * 40) % 256
    smooth[height // 4 : height // 2, width // 3 :] //= 3
    mixed = (row * 7919 + column * 104729 + channel * 1299709) * 2654435761 % 2**32
    return np.stack([smooth, mixed >> 24]).astype(np.uint8)


def digest(images):
    return hashlib.sha256(np.ascontiguousarray(images).tobytes()).hexdigest()
