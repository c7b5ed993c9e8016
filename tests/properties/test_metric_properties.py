"""Properties of metrics and of their mergeable statistics, on rows nobody thought of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftcal.metrics import (
    MetricSketch,
    aurc,
    bin_table,
    debiased_ece,
    ece,
    ks_error,
    mce,
    smooth_ece,
)
from shiftcal.numerics.sketch.cells import cell_of, n_cells

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


@given(ROWS, BINS, BINNING)
def test_debiased_is_at_most_the_plug_in_root_mean_square(rows, n_bins, binning):
    c, r = arrays(rows)
    table = bin_table(c, r, n_bins=n_bins, binning=binning)
    held = table.count > 0
    plug_in = np.sqrt(np.average(table.gap[held] ** 2, weights=table.count[held]))
    assert 0 <= debiased_ece(c, r, n_bins=n_bins, binning=binning) <= plug_in + ROUNDING


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


@given(st.lists(CONFIDENCE, min_size=2, max_size=50), st.integers(1, 13))
def test_cells_follow_the_order_of_confidences(values, precision):
    cell = cell_of(np.sort(np.array(values)), precision)
    assert (np.diff(cell) >= 0).all()
    assert cell.min() >= 0
    assert cell.max() < n_cells(precision)


@given(ROWS, st.integers(1, 8), BINS)
def test_the_range_of_a_sketch_always_holds_the_exact_ece(rows, precision, n_bins):
    c, r = arrays(rows)
    sketch = MetricSketch(precision=precision, width_bins=n_bins)
    sketch.update_top1(c, r)
    low, high = sketch.ece_range(n_bins=n_bins)
    assert low - ROUNDING <= ece(c, r, n_bins=n_bins) <= high + ROUNDING
    low, high = sketch.ece_range(n_bins=n_bins, binning="width")
    assert low - ROUNDING <= ece(c, r, n_bins=n_bins, binning="width") <= high + ROUNDING


@given(ROWS, st.lists(st.integers(0, 4), min_size=60, max_size=60))
def test_any_sharding_in_any_order_gives_the_same_bits(rows, shard_of):
    whole = MetricSketch(precision=3)
    whole.update_top1(*arrays(rows))
    shards = []
    for shard in range(5):
        mine = [row for row, s in zip(rows, shard_of, strict=False) if s == shard]
        part = MetricSketch(precision=3)
        for row in reversed(mine):
            part.update_top1(*arrays([row]))
        shards.append(part)
    left_to_right = sum(shards, MetricSketch(precision=3))
    a, b, c, d, e = shards
    assert left_to_right == whole
    assert (e + (d + c)) + (b + a) == whole


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 40), st.integers(0, 40))
def test_whole_rows_can_be_sharded_too(seed, k, n, cut):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.3), n)
    labels = rng.integers(0, k, n)
    whole, left, right = (MetricSketch(precision=3, n_classes=k) for _ in range(3))
    whole.update(probs, labels)
    order = rng.permutation(n)
    for part, rows in ((left, order[:cut]), (right, order[cut:])):
        if len(rows):
            part.update(probs[rows], labels[rows])
    assert left + right == whole
