"""Cells of confidence."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.numerics.sketch import cell_of, n_cells


@pytest.mark.parametrize("precision", [1, 3, 11])
def test_exact_zero_and_one_have_cells_of_their_own(precision):
    c = np.array([0.0, 5e-324, 1e-9, 1 - 2**-53, 1.0])
    last = n_cells(precision) - 1
    assert cell_of(c, precision).tolist() == [0, 1, 1, last - 1, last]


@pytest.mark.parametrize("precision", [1, 3, 11])
def test_cells_are_closed_above_and_follow_without_gaps(precision):
    # Every cell edge in the middle, and those of the octaves at both ends.
    step = 2.0 ** -(precision + 6)
    edges = np.arange(round(1 / 64 / step), round(63 / 64 / step) + 1) * step
    octave = np.arange(2**precision, 2 ** (precision + 1)) * 2.0**-precision
    near = np.concatenate([octave * 2.0**-j for j in range(25, 6, -1)])
    edges = np.concatenate([near, edges, np.sort(1 - near)])
    cell = cell_of(edges, precision)
    np.testing.assert_array_equal(np.diff(np.unique(edges)) > 0, True)
    assert np.unique(np.diff(cell[np.diff(edges, append=2) > 0])).tolist() == [1]
    below = cell_of(np.nextafter(edges, 0), precision)
    above = cell_of(np.nextafter(edges, 1), precision)
    np.testing.assert_array_equal(above, cell + 1)
    inner = edges > 2.0**-25
    np.testing.assert_array_equal(below[inner], cell[inner])
    assert cell.max() + 1 == n_cells(precision) - 2


def test_widths_are_as_documented():
    def width(at):
        near = at + np.arange(-1000, 1001) * 1e-8
        return np.ptp(near[cell_of(near, 11) == cell_of(np.array([at]), 11)])

    assert width(0.6) == pytest.approx(7.6e-6, rel=0.05)
    assert width(0.99) == pytest.approx(3.8e-6, rel=0.05)
    assert width(0.999) == pytest.approx(4.8e-7, rel=0.05)
