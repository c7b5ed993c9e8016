"""Noise in numbers, and columns that drift."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from shiftcal.corruptions import corrupt_inputs
from shiftcal.corruptions.tabular import Drift, Noise
from shiftcal.errors import InputError

RNG = np.random.default_rng(0)
ROWS = np.column_stack([RNG.normal(5, 2, 20_000), RNG.exponential(300, 20_000)])


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_the_noise_is_normal_with_the_strength_in_units_of_the_interquartile_range(severity):
    noise = Noise(clip=False).fit(ROWS)
    moved = corrupt_inputs(ROWS, noise, severity=severity) - ROWS
    scale = stats.iqr(ROWS, axis=0, scale="normal")
    standard = moved / (scale * noise.strengths[severity - 1])
    for column in standard.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    # Five standard errors of a correlation that is 0.
    assert abs(np.corrcoef(standard.T)[0, 1]) < 5 / np.sqrt(len(ROWS))


def test_where_most_rows_are_alike_the_plain_deviation_counts():
    rows = np.zeros((1000, 2))
    rows[:100, 0] = 10.0
    noise = Noise(strengths=[1.0], clip=False).fit(rows)
    moved = corrupt_inputs(rows, noise, severity=1) - rows
    # The deviation of a normal sample of 1,000 is off by 2.2 %; five times that.
    assert moved[:, 0].std() == pytest.approx(rows[:, 0].std(), rel=0.11)
    assert not moved[:, 1].any()  # a constant column


def test_whole_numbers_stay_whole_and_within_their_type():
    rows = np.array([[0, 250], [3, 255], [9, 1], [4, 0]] * 50, dtype=np.uint8)
    made = corrupt_inputs(rows, Noise(clip=False).fit(rows), severity=5)
    assert made.dtype == np.uint8
    assert made.min() == 0
    assert made.max() == 255
    largest = np.array([[2**63 - 1], [-(2**63)], [0]] * 5, dtype=np.int64)
    made = corrupt_inputs(largest, Noise(clip=False).fit(largest), severity=5)
    assert made.dtype == np.int64  # and no warning of an invalid cast


def test_floats_stay_as_long_as_they_were():
    for dtype in (np.float16, np.float32):
        rows = ROWS[:50].astype(dtype)
        made = corrupt_inputs(rows, Noise().fit(rows), severity=2)
        assert made.dtype == dtype
        assert np.isfinite(made).all()


def test_the_range_that_was_seen_is_kept_unless_it_shall_not_be():
    for kind in (Noise, Drift):
        made = corrupt_inputs(ROWS, kind().fit(ROWS), severity=5)
        assert (made.min(axis=0) >= ROWS.min(axis=0)).all()
        assert (made.max(axis=0) <= ROWS.max(axis=0)).all()
        wild = kind(clip=False).fit(ROWS)
        assert "beyond the range" in wild.description
        beyond = corrupt_inputs(ROWS, wild, severity=5)
        assert ((beyond < ROWS.min(axis=0)) | (beyond > ROWS.max(axis=0))).any()
        with pytest.raises(InputError, match="clip must be true or false"):
            kind(clip="yes")


def test_what_was_outside_the_range_before_is_not_pulled_in():
    noise = Noise(strengths=[1.0]).fit(ROWS)
    new = np.array([[1000.0, -500.0]] * 500)
    made = corrupt_inputs(new, noise, severity=1)
    assert made[:, 0].max() == 1000
    assert made[:, 1].min() == -500
    assert (made != new).mean(axis=0) == pytest.approx([0.5, 0.5], abs=5 * 0.5 / 500**0.5)


def test_missing_and_infinite_cells_stay_and_do_not_count():
    rows = np.array([[1.0], [2.0], [3.0], [np.nan], [np.inf], [-np.inf]] * 10)
    noise = Noise(strengths=[1.0], clip=False).fit(rows)
    known = rows[np.isfinite(rows)]
    assert noise.columns_[0].scale == pytest.approx(stats.iqr(known, scale="normal"), rel=1e-15)
    made = corrupt_inputs(rows, noise, severity=1)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(rows))
    np.testing.assert_array_equal(made[np.isinf(rows)], rows[np.isinf(rows)])
    assert (made[np.isfinite(rows)] != known).all()


def test_a_column_of_nothing_stays():
    rows = np.column_stack([np.full(9, np.nan), np.arange(9.0)])
    made = corrupt_inputs(rows, Noise().fit(rows), severity=5)
    assert np.isnan(made[:, 0]).all()


def test_columns_can_be_named():
    frame = pd.DataFrame({"a": np.arange(9.0), "code": np.arange(9) % 3})
    made = corrupt_inputs(frame, Noise(columns=["a"], clip=False).fit(frame), severity=5)
    assert made["code"].equals(frame["code"])
    assert (made["a"] != frame["a"]).all()
    rows = frame.to_numpy()
    made = corrupt_inputs(rows, Noise(columns=0).fit(rows), severity=5)
    np.testing.assert_array_equal(made[:, 1], rows[:, 1])


def test_drift_moves_a_column_by_one_amount_in_one_direction_at_all_severities():
    rows = RNG.normal(size=(50, 200))
    drift = Drift(clip=False).fit(rows)
    scale = stats.iqr(rows, axis=0, scale="normal")
    ways = []
    for severity, strength in enumerate(drift.strengths, start=1):
        moved = corrupt_inputs(rows, drift, severity=severity, seed=4) - rows
        # Sums of numbers near 1 are right to 1e-15.
        np.testing.assert_allclose(moved, np.tile(moved[0], (50, 1)), atol=1e-14)
        np.testing.assert_allclose(np.abs(moved[0]), strength * scale, rtol=1e-12)
        ways.append(np.sign(moved[0]))
    assert np.ptp(ways, axis=0).max() == 0
    assert stats.binomtest(int((ways[0] > 0).sum()), 200).pvalue > 1e-4
    other = corrupt_inputs(rows, drift, severity=1, seed=5) - rows
    assert (np.sign(other[0]) != ways[0]).any()
