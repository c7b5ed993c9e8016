"""Kernels called with anything: they do their work or raise, and touch no memory but their own.

`make sanitize` runs this where every access to memory is checked.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftcal import _kernels

# Next to arrays of the caller's, these take numbers of ours, of which they trust the size.
TRUSTING = ("ladder_sums_f4", "ladder_sums_f8", "frost_textures", "jpeg_round_trip")
KERNELS = [
    name for name in dir(_kernels) if callable(getattr(_kernels, name)) and name not in TRUSTING
]
PART = re.compile(r"(int|real)|([fiu])(\d)\(([^)]*)\)(\*?)")
LENGTHS = (0, 1, 2, 3, 4, 5, 8, 9, 16, 33)


def length(known, rng):
    """Any, or one that goes with those before: many kernels want 2 k + 4 of something, or n + 1."""
    if not known or rng.random() < 0.4:
        return int(rng.choice(LENGTHS))
    x, y = rng.choice(known, 2)
    return min(int(rng.choice([x, x + 1, 2 * x, 3 * x, 2 * x + 2, 2 * x + 4, x * y + 1])), 100)


def arguments(signature, rng):
    """Numbers and arrays of the right types and axes, of random lengths and with random entries."""
    lengths = {}
    for number, kind, size, axes, _ in PART.findall(signature):
        if number:
            yield (
                int(rng.choice([-3, -1, 0, 1, 2, 3, 7, 20]))
                if number == "int"
                else float(rng.choice([-1e300, -2.0, 0.0, 0.3, 1.0, 5.0, 1e300, np.nan]))
            )
            continue
        shape = [
            int(axis)
            if axis.isdigit()
            else lengths.setdefault(axis, length(list(lengths.values()), rng))
            for axis in axes.split(",")
        ]
        dtype, spread = np.dtype(f"{kind}{size}"), rng.choice([1, 3, 12, 200])
        if kind == "f":
            yield (spread * rng.standard_normal(shape)).astype(dtype)
        else:
            low, high = (0 if kind == "u" or rng.random() < 0.7 else -spread), spread
            ends = np.iinfo(dtype)
            yield np.clip(rng.integers(int(low), int(high) + 1, shape), ends.min, ends.max).astype(
                dtype
            )


@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_kernel_called_with_anything_works_or_raises(name, seed):
    kernel, rng = getattr(_kernels, name), np.random.default_rng(seed)
    try:
        with np.errstate(all="ignore"):
            kernel(*arguments(kernel.__doc__, rng))
    except ValueError as error:
        assert name in str(error)  # noqa: PT017
