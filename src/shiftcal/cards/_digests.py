"""Digests of scores: the same numbers give the same digest, in whatever file or dtype."""

from __future__ import annotations

import hashlib

import numpy as np

from shiftcal._types import Labels, Logits
from shiftcal.numerics.row_blocks import row_blocks


def scores_digest(logits: Logits, labels: Labels | None) -> str:
    """SHA-256 of shape, logits and labels, in hexadecimal digits.

    The shape and the labels are taken as little-endian int64, logits as little-endian float64, row
    by row. Without labels it is the digest of what comes before them.

    Args:
        logits: ``(n, k)``.
        labels: ``(n,)``, or ``None``.
    """
    n, k = logits.shape
    whole = hashlib.sha256(np.array([n, k], dtype="<i8").tobytes())
    for rows in row_blocks(n, k):
        whole.update(logits[rows].astype("<f8").tobytes())
    if labels is not None:
        whole.update(labels.astype("<i8").tobytes())
    return whole.hexdigest()
