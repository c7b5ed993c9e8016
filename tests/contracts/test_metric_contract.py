"""What every metric promises, asked of every metric there is."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import shiftcal.metrics as metrics_package
from shiftcal import metrics
from shiftcal.errors import InputError, UnknownName
from shiftcal.metrics import bootstrap, facts_of
from shiftcal.scoring import ScoreStatistics


def rows_for(name, n=600, k=4, seed=0):
    """Arguments for a metric, with ties among the confidences."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.5), n).round(2)
    probs[:, 0] += 1 - probs.sum(axis=1)
    probs = np.abs(probs)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    if facts_of(metrics.get(name)).reads == "full":
        return probs, labels
    return probs.max(axis=1), probs.argmax(axis=1) == labels


def perfect_for(name, n=40, k=4):
    labels = np.arange(n) % k
    if facts_of(metrics.get(name)).reads == "full":
        return np.eye(k)[labels], labels
    return np.ones(n), np.ones(n, bool)


@pytest.fixture(params=metrics.names())
def name(request):
    return request.param


@pytest.fixture
def metric(name):
    return metrics.get(name)


@pytest.fixture
def rows(name):
    return rows_for(name)


def reads(kind):
    return [name for name in metrics.names() if facts_of(metrics.get(name)).reads == kind]


def test_it_is_a_plain_number_within_its_range(metric, rows):
    facts = facts_of(metric)
    for arrays in (rows, [a[:1] for a in rows], [a[:7] for a in rows]):
        value = metric(*arrays)
        assert type(value) is float
        assert facts.lower <= value <= facts.upper


def test_a_perfect_predictor_gets_the_best_value(name, metric):
    facts = facts_of(metric)
    best = facts.lower if facts.better == "lower" else facts.upper
    assert metric(*perfect_for(name)) == best


def test_the_worst_predictor_gets_the_worst_value_or_87_for_logarithms(name, metric):
    facts = facts_of(metric)
    first, second = perfect_for(name, k=2)
    wrong = ~second if facts.reads == "top1" else 1 - second
    worst = facts.upper if facts.better == "lower" else facts.lower
    if math.isinf(worst):
        worst = 87.336545
    # Two bins of equal size part the zeros from the ones of a column; of fifteen, one mixes them.
    options = {"n_bins": 2} if name == "classwise-ece" else {}
    assert metric(first, wrong, **options) == pytest.approx(worst)


def test_the_order_of_rows_does_not_matter(metric, rows):
    order = np.random.default_rng(1).permutation(len(rows[0]))
    # Sums may run in another order, which shows in the last digits only.
    assert metric(*[a[order] for a in rows]) == pytest.approx(metric(*rows), abs=1e-12)


def test_every_row_twice_changes_little_and_means_not_at_all(name, metric, rows):
    twice = metric(*[np.concatenate([a, a]) for a in rows])
    if facts_of(metric).rows is not None:
        assert twice == pytest.approx(metric(*rows), rel=1e-12)
    elif name in ("ks-error", "smooth-ece"):
        assert twice == pytest.approx(metric(*rows), rel=1e-6)
    elif name == "debiased-ece":  # more rows, less noise to subtract
        assert twice >= metric(*rows)
    else:
        assert twice == pytest.approx(metric(*rows), abs=0.02)


def test_single_and_double_precision_agree(name, metric, rows):
    single = rows[0].astype(np.float32)
    assert metric(single, rows[1]) == pytest.approx(
        metric(single.astype(np.float64), rows[1]), rel=1e-9
    )
    half = rows[0].astype(np.float16)
    # Near zero a root magnifies what ties that are new in half precision change.
    power = 2 if name == "debiased-ece" else 1
    assert metric(half, rows[1]) ** power == pytest.approx(metric(*rows) ** power, abs=0.01)


def test_inputs_are_left_alone(metric, rows):
    before = [a.copy() for a in rows]
    for a in rows:
        a.flags.writeable = False
    metric(*rows)
    for a, b in zip(rows, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_lists_and_views_are_read_like_arrays(metric, rows):
    value = metric(*rows)
    assert metric(*[a.tolist() for a in rows]) == pytest.approx(value, abs=1e-12)
    foreign = rows[0].astype(rows[0].dtype.newbyteorder())
    assert metric(foreign, rows[1]) == pytest.approx(value, abs=1e-12)
    backwards = [a[::-1] for a in rows]
    assert metric(*backwards) == pytest.approx(value, abs=1e-12)
    if rows[0].ndim == 2:
        assert metric(np.asfortranarray(rows[0]), rows[1]) == pytest.approx(value, abs=1e-12)


def test_what_is_not_a_number_is_refused(metric, rows):
    for bad in (np.nan, np.inf):
        first = rows[0].copy()
        first[3] = bad
        with pytest.raises(InputError, match="finite"):
            metric(first, rows[1])


def test_options_are_keywords_and_wrong_ones_are_refused(metric, rows):
    parameters = list(inspect.signature(metric).parameters.values())
    assert [p.kind for p in parameters[2:]] == [inspect.Parameter.KEYWORD_ONLY] * (
        len(parameters) - 2
    )
    if "n_bins" in inspect.signature(metric).parameters:
        with pytest.raises(InputError, match="n_bins must be a whole number"):
            metric(*rows, n_bins=2.5)
        with pytest.raises(UnknownName, match="binning must be one of 'size', 'width'"):
            metric(*rows, binning="widht")


def test_it_has_an_interval(metric, rows):
    interval = bootstrap(metric, *rows, n_resamples=20, seed=1)
    assert interval.value == metric(*rows)
    facts = facts_of(metric)
    assert facts.lower <= interval.low <= interval.value <= interval.high <= facts.upper


def test_it_is_exported_as_a_function_and_statistics_have_it(name, metric):
    word = name.replace("-", "_")
    assert getattr(metrics_package, word) is metric
    assert word in metrics_package.__all__
    # Columns of all classes are more than fits into statistics of a fixed size.
    assert callable(getattr(ScoreStatistics, word, None)) or name == "classwise-ece"


def test_probs_and_labels_do_as_well_as_confidence_and_correct(name, metric):
    if facts_of(metric).reads == "full":
        pytest.skip("reads probs and labels anyway")
    rng = np.random.default_rng(4)
    probs, labels = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    top1 = probs.max(axis=1), probs.argmax(axis=1) == labels
    assert metric(probs, labels) == metric(*top1)
    assert bootstrap(metric, probs, labels, n_resamples=9) == bootstrap(
        metric, *top1, n_resamples=9
    )
    with pytest.raises(InputError, match="go with labels, class indices; got booleans"):
        metric(probs, top1[1])
    with pytest.raises(InputError, match=r"labels must lie in 0\.\.2"):
        metric(probs, labels + 1)
