"""MetricSketch: the same numbers as the exact functions, from statistics that add up."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from shiftcal import metrics
from shiftcal.errors import InputError
from shiftcal.metrics import MetricSketch, bin_table, ece
from shiftcal.metrics.base import facts_of


def draw(n, k=6, seed=0, sharpen=1.5):
    """Probabilities that are too sure, with labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(k, 0.4), n)
    labels = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    probs = truth**sharpen
    return probs / probs.sum(axis=1, keepdims=True), labels


def top1(probs, labels):
    return probs.max(axis=1), probs.argmax(axis=1) == labels


@pytest.fixture(scope="module")
def rows():
    return draw(20_000)


@pytest.fixture(scope="module")
def sketch(rows):
    s = MetricSketch(n_classes=6)
    s.update(*rows)
    return s


# How far each may be from the exact function at 20,000 rows, and why. Cells are 7.6e-6 wide, so a
# cell holds a row or two: what happens inside cells is worth 1e-4 of the rows at the most.
TOLERANCE = {
    "accuracy": 1e-15,
    "nll": 6e-8,  # each row is rounded to 2^-24
    "brier": 1e-9,
    "top1-brier": 5e-10,
    "ece": 5e-5,
    "mce": 5e-4,  # one bin's share of the same
    "debiased-ece": 1e-4,
    "classwise-ece": 2e-3,  # coarse cells, a percent of the rows each
    "ks-error": 1e-4,
    "smooth-ece": 1e-5,
    "aurc": 1e-5,
}


@pytest.mark.parametrize("name", metrics.names())
def test_every_metric_is_there_and_means_the_same(rows, sketch, name):
    function = metrics.get(name)
    arrays = rows if facts_of(function).reads == "full" else top1(*rows)
    value = getattr(sketch, name.replace("-", "_"))()
    assert value == pytest.approx(function(*arrays), abs=TOLERANCE[name])


@pytest.mark.parametrize("name", ["ece", "mce", "debiased-ece", "classwise-ece"])
def test_bins_of_equal_width_are_exact(rows, sketch, name):
    function = metrics.get(name)
    arrays = rows if facts_of(function).reads == "full" else top1(*rows)
    value = getattr(sketch, name.replace("-", "_"))(binning="width")
    # Each confidence is rounded to 2^-31.
    assert value == pytest.approx(function(*arrays, binning="width"), abs=5e-10)


@pytest.mark.parametrize("binning", ["size", "width"])
def test_the_bin_table_is_that_of_the_rows(rows, sketch, binning):
    exact, ours = bin_table(*top1(*rows), binning=binning), sketch.bin_table(binning=binning)
    np.testing.assert_array_equal(ours.count, exact.count)
    for column in ("lower", "upper", "confidence"):
        np.testing.assert_allclose(
            getattr(ours, column), getattr(exact, column), atol=8e-6, err_msg=column
        )
    np.testing.assert_allclose(ours.accuracy, exact.accuracy, atol=1e-3)  # a row of 1,333


def test_ties_are_exact_and_so_is_their_range():
    # Isotonic and histogram maps give few values: then no cell mixes two of them.
    rng = np.random.default_rng(0)
    c = rng.choice([0.31, 0.55, 0.72, 0.93, 1.0], 5000)
    r = rng.random(5000) < c
    s = MetricSketch(precision=6)
    s.update_top1(c, r)
    low, high = s.ece_range()
    assert high - low < 3e-8  # 15 times the rounding of a confidence
    for exact, ours in ((ece(c, r), s.ece()), (metrics.aurc(c, r), s.aurc())):
        assert ours == pytest.approx(exact, abs=1e-9)
    assert s.ks_error() == pytest.approx(metrics.ks_error(c, r), abs=1e-9)


def test_the_range_holds_the_exact_value_also_when_cells_are_coarse():
    for seed in range(20):
        c, r = top1(*draw(500, seed=seed, sharpen=1.0))
        s = MetricSketch(precision=1)
        s.update_top1(c, r)
        low, high = s.ece_range()
        assert low - 1e-12 <= ece(c, r) <= high + 1e-12
        assert low <= s.ece() <= high
        low, high = s.ece_range(binning="width")
        assert low <= ece(c, r, binning="width") <= high
        assert high - low < 1e-9


def test_more_precision_narrows_the_range():
    c, r = top1(*draw(20_000, sharpen=1.0))
    widths = []
    for precision in (4, 8, 12):
        s = MetricSketch(precision=precision)
        s.update_top1(c, r)
        low, high = s.ece_range()
        widths.append(high - low)
    assert widths[0] > 4 * widths[1] > 16 * widths[2]


def test_confidences_that_crowd_near_one_are_told_apart():
    rng = np.random.default_rng(1)
    c = (1 - 10.0 ** rng.uniform(-7, -2, 30_000)).astype(np.float32)
    c[:300] = 1.0
    r = rng.random(30_000) < 0.7 + 0.3 * rng.random(30_000)
    s = MetricSketch()
    s.update_top1(c, r)
    assert s.ece() == pytest.approx(ece(c, r), abs=1e-9)
    counted = s.bin_table().count
    assert counted.tolist() == [2000] * 15


def test_adding_leaves_the_parts_as_they_were(rows):
    probs, labels = rows
    left, right, both = MetricSketch(), MetricSketch(), MetricSketch()
    left.update(probs[:7], labels[:7])
    right.update(probs[7:], labels[7:])
    both.update(probs, labels)
    total = left + right
    assert total == both
    assert (left.n, right.n, total.n) == (7, 19_993, 20_000)
    assert left.merge(right) is left
    assert left == both
    assert right != both


def test_sum_adds_many(rows):
    probs, labels = rows
    parts = []
    for i in range(4):
        part = MetricSketch(precision=5)
        part.update(probs[i::4], labels[i::4])
        parts.append(part)
    whole = MetricSketch(precision=5)
    whole.update(probs, labels)
    assert sum(parts, MetricSketch(precision=5)) == whole
    assert sum(parts) == whole


def test_the_sum_of_one_is_not_that_one(rows):
    probs, labels = rows
    part = MetricSketch(precision=5)
    part.update(probs[:50], labels[:50])
    total = sum([part])
    assert total == part
    total.update(probs[50:60], labels[50:60])
    assert (part.n, total.n) == (50, 60)
    with pytest.raises(TypeError):
        1 + part


def test_its_size_is_fixed_and_as_documented(rows):
    empty, full = MetricSketch(), MetricSketch()
    full.update(*rows)
    assert empty.nbytes == full.nbytes
    assert full.nbytes / 1e6 == pytest.approx(8.2, abs=0.05)
    with_classes = MetricSketch(n_classes=100).nbytes
    assert (with_classes - empty.nbytes) / 100 == pytest.approx(32_000, rel=0.03)
    assert repr(full) == "<MetricSketch of 20,000 rows, 8.2 MB>"


def test_it_travels_as_arrays_and_pickles(sketch, tmp_path):
    path = tmp_path / "sketch.npz"
    np.savez_compressed(path, **sketch.to_arrays())
    with np.load(path) as arrays:
        back = MetricSketch.from_arrays(arrays)
    assert back == sketch
    assert back.classwise_ece() == sketch.classwise_ece()
    assert pickle.loads(pickle.dumps(sketch)) == sketch
    back.update_top1([0.5], [True])
    assert back != sketch


def test_damaged_arrays_are_refused(sketch):
    arrays = sketch.to_arrays()
    with pytest.raises(InputError, match=r"not the arrays of a MetricSketch .* settings are \[\]"):
        MetricSketch.from_arrays({})
    newer = arrays | {"settings": arrays["settings"] + [1, 0, 0, 0]}
    with pytest.raises(InputError, match="of format 1: settings are"):
        MetricSketch.from_arrays(newer)
    missing = {name: a for name, a in arrays.items() if name != "top1_count"}
    with pytest.raises(InputError, match=r"array 'top1_count' .* is missing or damaged"):
        MetricSketch.from_arrays(missing)
    with pytest.raises(InputError, match=r"'totals' .* must have shape"):
        MetricSketch.from_arrays(arrays | {"totals": arrays["totals"][:2]})


def test_what_was_not_counted_cannot_be_read():
    s = MetricSketch()
    for name in ("ece", "accuracy", "nll", "aurc", "ece_range"):
        with pytest.raises(InputError, match="has counted no rows yet; call update first"):
            getattr(s, name)()
    s.update_top1([0.9, 0.8], [True, False])
    assert s.accuracy() == 0.5
    for name in ("nll", "brier", "classwise_ece"):
        with pytest.raises(InputError, match=f"{name} needs whole rows .* 2 came by update_top1"):
            getattr(s, name)()
    whole = MetricSketch()
    whole.update([[0.9, 0.1]], [0])
    with pytest.raises(InputError, match=r"MetricSketch\(n_classes=k\)"):
        whole.classwise_ece()


def test_bins_of_another_width_are_refused(sketch):
    with pytest.raises(InputError, match=r"keeps 15 bins .* 10 were asked .* n_bins=15"):
        sketch.ece(binning="width", n_bins=10)
    s = MetricSketch(width_bins=10)
    s.update_top1([0.95], [False])
    assert s.ece(binning="width", n_bins=10) == pytest.approx(0.95)


def test_sketches_made_differently_are_not_added():
    with pytest.raises(InputError, match=r"made alike; these have .*precision=11.*precision=5"):
        MetricSketch().merge(MetricSketch(precision=5))
    with pytest.raises(InputError, match="only a MetricSketch can be added to one; got int"):
        MetricSketch().merge(3)
    with pytest.raises(TypeError):
        MetricSketch() + 3
    two, three = MetricSketch(), MetricSketch()
    two.update([[0.9, 0.1]], [0])
    three.update([[0.9, 0.1, 0.0]], [0])
    with pytest.raises(InputError, match="must have 2 columns like the rows before; got 3"):
        two.merge(three)
    assert two.n == 1


def test_wrong_settings_and_rows_are_refused():
    with pytest.raises(InputError, match="precision must be at most 16; got 17"):
        MetricSketch(precision=17)
    with pytest.raises(InputError, match="n_classes must be a whole number of at least 2"):
        MetricSketch(n_classes=1)
    s = MetricSketch(n_classes=3)
    with pytest.raises(InputError, match="must have 3 columns"):
        s.update([[0.5, 0.5]], [0])
    with pytest.raises(InputError, match="correct must have one entry"):
        s.update_top1([0.5, 0.6], [True])
    assert s.n == 0


def test_it_stops_before_its_numbers_overflow():
    s = MetricSketch(precision=1)
    s.update_top1([1.0], [True])
    for _ in range(32):
        s = s + s
    assert s.n == 2**32
    assert s.ece() == 0.0
    nearly = s.to_arrays()
    with pytest.raises(InputError, match=r"at most 8,589,934,591 rows, .* 8,589,934,592"):
        s.merge(s)
    assert s.to_arrays()["totals"].tolist() == nearly["totals"].tolist()


def test_the_largest_losses_fit_for_the_most_rows():
    s = MetricSketch(precision=1)
    s.update([[1.0, 0.0]], [1])
    for _ in range(32):
        s = s + s
    assert s.nll() == pytest.approx(87.336545, rel=1e-8)
    assert s.brier() == 2.0
    assert s.top1_brier() == 1.0
    assert s.ece() == 1.0
