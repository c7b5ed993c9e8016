"""A compiled pass over labelled logits, block by block and on several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Labels, Logits, Weights
from shiftcal.numerics._jit import to_read
from shiftcal.numerics._threads import in_parts

# Below this many logits the work takes milliseconds in numpy; numba's import alone takes half a
# second, which is what a small job on the command line would notice.
SMALL = 1 << 15
# Rows in a block, the unit of a pass. Fixed, so that sums do not depend on the threads.
ROWS = 128
# Logits worth a part of their own.
_PART = 1 << 19


def block_sums(
    kernel: Callable[..., None],
    b: np.floating[Any],
    data: tuple[Logits, Labels, Weights | None],
    *,
    columns: int,
    every: int = 1,
) -> NDArray[np.float64]:
    """Sums over all rows of what ``kernel`` computes for each block.

    Args:
        kernel: Takes logits, labels, weights, ``b``, the numbers of some blocks, and an array of
            a row for each of them to fill.
        b: Inverse temperature in the kernel's units and in the logits' type.
        data: ``(n, k)`` logits, ``(n,)`` labels, ``(n,)`` weights or ``None``.
        columns: Number of sums.
        every: Look at every such block only.
    """
    logits, labels, weights = data
    z, y = to_read(logits), to_read(labels)
    w = to_read(np.empty(0) if weights is None else weights)
    blocks = np.arange(0, -(-len(z) // ROWS), every)
    sums = np.empty((len(blocks), columns))

    def work(start: int, stop: int) -> None:
        kernel(z, y, w, b, blocks[start:stop], sums[start:stop])

    in_parts(work, len(blocks), least=-(-_PART // (ROWS * z.shape[1])))
    return sums.sum(axis=0)


def moderate(weights: Weights | None) -> Weights | None:
    """Weights whose sums can neither overflow nor vanish; only their ratios matter."""
    if weights is None or 1e-100 < weights.max() < 1e100:
        return weights
    return weights / weights.max()
