"""The small tables of normal deviates against scipy's quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shiftcal.corruptions._kernels import normal_cells as cells

CELL = np.arange(cells.CELLS)
PLACE = np.maximum(CELL // cells.COLUMN, CELL - cells.SHIFT)


def test_cells_and_tail_make_the_normal_distribution():
    inner, tail = cells.cell_medians()[: cells.TAIL], cells.tail_medians()
    assert inner[-1] < stats.norm.isf(32 / 2**16) < tail[0]
    assert (np.diff(np.concatenate([inner, tail])) > 0).all()
    weights = np.repeat([1 / cells.CELLS, 32 / cells.CELLS / len(tail)], [len(inner), len(tail)])
    values = np.concatenate([inner, tail])
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights @ values**2 == pytest.approx(1, abs=3e-7)
    assert weights @ values**4 == pytest.approx(3, abs=2e-5)
    assert tail[-1] == pytest.approx(5.2947, abs=1e-4)
    assert 2 * stats.norm.sf(tail[-1]) == pytest.approx(1.2e-7, rel=0.01)


@pytest.mark.parametrize("scale", [0.5, 10.2, 25.5, 45.9, 96.9, 160.0])
def test_compressed_steps_are_exact(scale):
    table, tail = cells.step_tables(scale)
    steps = (table[PLACE] + CELL % cells.COLUMN) >> 4
    expected = np.minimum(np.floor(scale * stats.norm.ppf(0.5 + (CELL + 0.5) / 2**16)), 255)
    np.testing.assert_array_equal(steps, expected)
    np.testing.assert_array_equal(tail, np.minimum(np.floor(scale * cells.tail_medians()), 255))


def test_deviates_on_straight_lines_are_right_to_a_few_parts_in_a_hundred_thousand():
    table, tail = cells.deviate_tables()
    entry = table[PLACE].astype(np.int64)
    along = ((entry & 4095) * (CELL % cells.COLUMN)) >> 4
    deviates = ((entry >> cells.SLOPE_BITS) + along) * cells.UNIT
    expected = stats.norm.ppf(0.5 + (CELL + 0.5) / 2**16)
    np.testing.assert_allclose(deviates, expected, atol=2e-5)
    np.testing.assert_allclose(tail, cells.tail_medians(), rtol=1e-7)


def test_the_table_stays_small():
    # Larger ones than a fraction of the first-level cache push the images out of it.
    assert cells.step_tables(20.0)[0].nbytes < 8192
    assert PLACE.max() + 1 == len(cells.deviate_tables()[0])
