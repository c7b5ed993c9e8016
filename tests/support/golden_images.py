"""Images made of whole-number arithmetic alone: the same on every machine and version."""

from __future__ import annotations

import hashlib

import numpy as np

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
