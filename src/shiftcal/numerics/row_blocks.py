"""Rows in blocks, so that what is computed from them stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator

# Elements per block of float64: half a megabyte.
_BLOCK = 1 << 16


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Slices that together cover ``n`` rows of ``k`` columns, in order."""
    rows = max(1, _BLOCK // k)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))
