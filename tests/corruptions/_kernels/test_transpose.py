"""Blocks of 8 x 8 values turned round."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from shiftcal.corruptions._kernels.transpose_kernels import transpose_block


@njit
def _transpose(out, out_start, out_stride, values, start, stride):
    transpose_block(out, out_start, out_stride, values, start, stride)


@pytest.mark.parametrize("kind", [np.uint8, np.int16])
def test_a_block_is_transposed_and_nothing_beside_it_is_touched(kind):
    values = np.random.default_rng(2).integers(0, 250, (12, 19)).astype(kind)
    out = np.full((13, 11), 7, kind)
    expected = out.copy()
    expected[3:11, 2:10] = values[1:9, 5:13].T
    _transpose(out.reshape(-1), 3 * 11 + 2, 11, values.reshape(-1), 19 + 5, 19)
    np.testing.assert_array_equal(out, expected)
