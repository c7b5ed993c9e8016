"""Properties of metrics and of their mergeable statistics, on rows nobody thought of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.metrics import (
    aurc,
    bin_table,
    debiased_ece,
    ece,
    ks_error,
    mce,
    smooth_ece,
)

# Ties, the ends, neighbours of the ends, and anything between.
CONFIDENCE = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 1 / 3, 1 - 2**-24, 1 - 2**-53, 2**-25, 5e-324]),
    st.integers(0, 20).map(lambda i: i / 20),
    st.floats(0, 1),
)
ROWS = st.lists(st.tuples(CONFIDENCE, st.booleans()), min_size=1, max_size=60)
BINS = st.integers(1, 20)
BINNING = st.sampled_from(["size", "width"])
ROUNDING = 1e-12


def arrays(rows):
    c, r = zip(*rows, strict=True)
    return np.array(c), np.array(r)


@given(ROWS, BINS, BINNING)
def test_ece_lies_between_the_difference_of_means_and_mce(rows, n_bins, binning):
    c, r = arrays(rows)
    value = ece(c, r, n_bins=n_bins, binning=binning)
    assert abs(c.mean() - r.mean()) - ROUNDING <= value
    assert value <= mce(c, r, n_bins=n_bins, binning=binning) + ROUNDING
    assert mce(c, r, n_bins=n_bins, binning=binning) <= 1 + ROUNDING


@given(ROWS, BINS)
def test_debiased_is_at_most_the_plug_in_root_mean_square(rows, n_bins):
    c, r = arrays(rows)
    table = bin_table(c, r, n_bins=n_bins, binning="width")
    held = table.count > 0
    plug_in = np.sqrt(np.average(table.gap[held] ** 2, weights=table.count[held]))
    assert 0 <= debiased_ece(c, r, n_bins=n_bins, binning="width") <= plug_in + ROUNDING


@given(ROWS, BINS)
def test_debiased_bins_of_equal_size_never_cut_a_tie(rows, n_bins):
    c, r = arrays(sorted(rows))
    n, m = len(c), min(n_bins, len(c))
    ends = [np.searchsorted(c, part[-1], side="right") for part in np.array_split(c, m)]
    square, start = 0.0, 0
    for end in sorted(set(ends)):
        count, accuracy = end - start, r[start:end].mean()
        if count > 1:
            noise = accuracy * (1 - accuracy) / (count - 1)
            square += count / n * ((c[start:end].mean() - accuracy) ** 2 - noise)
        start = end
    # of a square that is all rounding the root is 1e-8
    assert debiased_ece(c, r, n_bins=n_bins) ** 2 == pytest.approx(max(square, 0), abs=ROUNDING)


@given(ROWS, st.randoms(use_true_random=False))
def test_no_metric_depends_on_the_order_of_rows(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    for metric in (ece, mce, ks_error, aurc, smooth_ece):
        assert metric(*arrays(shuffled)) == pytest.approx(metric(*arrays(rows)), abs=1e-9)


@given(ROWS)
def test_ks_error_and_smooth_ece_are_not_below_the_difference_of_means(rows):
    c, r = arrays(rows)
    least = abs(c.mean() - r.mean())
    assert ks_error(c, r) >= least - ROUNDING
    # The fixed point is found to 1e-10.
    assert smooth_ece(c, r) >= least - 1e-8
    assert smooth_ece(c, r) <= 1


@given(ROWS)
def test_aurc_lies_between_perfect_and_reversed_order(rows):
    _, r = arrays(rows)
    n = len(r)
    best, worst = (
        aurc(np.linspace(0, 1, n) if n > 1 else [0.5], np.sort(r)[::step]) for step in (1, -1)
    )
    assert best - ROUNDING <= aurc(*arrays(rows)) <= worst + ROUNDING


@given(ROWS, BINS, BINNING)
def test_a_table_counts_every_row_once(rows, n_bins, binning):
    c, r = arrays(rows)
    table = bin_table(c, r, n_bins=n_bins, binning=binning)
    assert table.count.sum() == len(c)
    held = table.count > 0
    assert np.dot(table.count[held], table.confidence[held]) == pytest.approx(c.sum(), abs=1e-9)
    assert np.dot(table.count[held], table.accuracy[held]) == pytest.approx(r.sum(), abs=1e-9)
