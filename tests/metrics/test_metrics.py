"""Metrics against their definitions and other libraries."""

from __future__ import annotations

import doctest
import importlib
import inspect
import itertools
import json

import calibration
import numpy as np
import pytest
import relplot
from netcal.metrics import ECE, MCE
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from shiftcal import maps
from shiftcal.checks import check_probs
from shiftcal.metrics import (
    accuracy,
    aurc,
    bin_table,
    brier,
    classwise_ece,
    debiased_ece,
    ece,
    ks_error,
    mce,
    nll,
    smooth_ece,
    top1_brier,
)
from shiftcal.numerics.softmax import softmax


@pytest.fixture
def binned():
    rng = np.random.default_rng(0)
    c = np.round(rng.beta(6, 2, 1003), 3)
    return c, rng.random(len(c)) < c


@pytest.mark.parametrize("binning", ["size", "width"])
@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_it_sums_up_to_the_errors(binned, binning, n_bins):
    table = bin_table(*binned, n_bins=n_bins, binning=binning)
    assert table.ece == pytest.approx(ece(*binned, n_bins=n_bins, binning=binning), abs=1e-12)
    assert table.mce == pytest.approx(mce(*binned, n_bins=n_bins, binning=binning), abs=1e-12)
    assert len(table) == n_bins


def test_it_becomes_json_and_text(binned):
    table = bin_table(*binned, n_bins=3)
    columns = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert list(columns) == ["lower", "upper", "count", "confidence", "accuracy", "gap"]
    assert columns["count"] == table.count.tolist()
    lines = str(table).splitlines()
    assert lines[0].split() == ["bin", *columns]
    assert len(lines) == 4
    assert lines[2].split()[1] == f"{table.lower[1]:.4f}"


@pytest.fixture
def rated_classes():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 1500)
    labels = (probs.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    return probs**2 / (probs**2).sum(axis=1, keepdims=True), labels


@pytest.mark.parametrize("binning", ["size", "width"])
def test_it_is_the_mean_of_each_column_judged_by_netcal(rated_classes, binning):
    probs, labels = rated_classes
    judge = ECE(15, equal_intervals=binning == "width", detection=True)
    each = [judge.measure(probs[:, j], (labels == j).astype(int)) for j in range(4)]
    assert classwise_ece(probs, labels, binning=binning) == pytest.approx(np.mean(each), abs=1e-12)


def test_probabilities_equal_in_two_rows_still_tie_after_the_check():
    # 0.1 + 0.7 + 0.2 misses 1 by rounding; dividing by it would tell the tenths apart.
    probs = np.array([[0.1, 0.7, 0.2], [0.1, 0.9, 0.0]])
    checked = check_probs(probs)
    np.testing.assert_array_equal(checked, probs)
    rough = check_probs(np.random.default_rng(0).dirichlet(np.ones(7), 50).astype(np.float32))
    np.testing.assert_array_equal(check_probs(rough), rough)
    assert check_probs([[1.0 + 1e-13, 0.0]]).max() == 1.0


def test_it_agrees_with_the_authors_package():
    rng = np.random.default_rng(0)
    c = rng.beta(6, 2, 1507)  # no ties, sizes that differ by one
    r = (rng.random(len(c)) < c**1.5).astype(int)
    data = list(zip(c, r, strict=True))
    edges = calibration.get_equal_bins(c, num_bins=15)
    theirs = calibration.unbiased_l2_ce(calibration.bin(data, edges))
    # The same formula on the same bins; sums run in another order.
    assert debiased_ece(c, r) == pytest.approx(theirs, abs=1e-12)
    edges = calibration.get_equal_prob_bins(c, num_bins=15)
    theirs = calibration.unbiased_l2_ce(calibration.bin(data, edges))
    assert debiased_ece(c, r, binning="width") == pytest.approx(theirs, abs=1e-12)


def tied(kind, n):
    """Confidence with ties and correctness, as a tree, a histogram or isotonic regression gives."""
    rng = np.random.default_rng(n)
    if kind == "tree":  # five leaves, the smallest a tenth of the rows
        c = rng.choice([0.55, 0.6, 0.8, 0.9, 0.95], n, p=[0.1, 0.2, 0.15, 0.3, 0.25])
        return c, rng.random(n) < c - 0.05
    x = np.log(rng.uniform(0.5, 1.0, n))
    logits = np.column_stack([x, np.log1p(-np.exp(x))])
    labels = (rng.random(n) > np.exp(x) ** 2).astype(int)
    fitted = maps.get(kind)().fit(logits[: n // 2], labels[: n // 2])
    p = fitted.predict_proba(logits)
    return p.max(axis=1), p.argmax(axis=1) == labels


@pytest.mark.parametrize("n", [1507, 40_000])  # sorted, and too many to sort
@pytest.mark.parametrize("kind", ["tree", "histogram", "isotonic"])
def test_ties_stay_together_as_in_the_authors_package(kind, n):
    c, r = tied(kind, n)
    data = list(zip(c, r.astype(int), strict=True))
    theirs = calibration.unbiased_l2_ce(calibration.bin(data, calibration.get_equal_bins(c, 15)))
    assert debiased_ece(c, r) == pytest.approx(theirs, abs=1e-9)
    if kind == "tree":  # every value is a bin
        binned = calibration.bin(data, calibration.get_discrete_bins(c))
        assert debiased_ece(c, r) == pytest.approx(calibration.unbiased_l2_ce(binned), abs=1e-9)


@pytest.mark.parametrize("values", [[0.9], [0.7, 0.9], [0.5, 0.6, 0.7, 0.8, 0.9]])
def test_a_true_square_of_a_hundredth_comes_back_from_ties(values):
    rng = np.random.default_rng(3)
    squares = []
    for _ in range(400):
        c = rng.choice(values, 2000)
        squares.append(debiased_ece(c, rng.random(2000) < c - 0.1) ** 2)
    # Of one draw the standard error is 0.002, of the mean 0.0001.
    assert np.mean(squares) == pytest.approx(0.01, abs=0.0004)


def test_its_square_is_unbiased_for_a_calibrated_predictor():
    # Squares are cut at zero, so of calibrated draws about half are exactly 0, and the rest are
    # far below what the plug-in error reads.
    rng = np.random.default_rng(1)
    values, plug_in = [], []
    for _ in range(60):
        c = rng.uniform(0.5, 1.0, 1000)
        r = rng.random(1000) < c
        values.append(debiased_ece(c, r))
        plug_in.append(ece(c, r))
    assert 0.3 < np.mean(np.array(values) == 0) < 0.7
    assert np.mean(values) < 0.5 * np.mean(plug_in)


# Sums of thousands of doubles in another order.
ROUNDING = 1e-12


def draw_ece(n, *, power=1.3, seed=0, ties=None):
    """Confidences that are too high, and whether each was right."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(6, 2, n)
    if ties is not None:
        confidence = np.round(confidence, ties)
    return confidence, rng.random(n) < confidence**power


def slow_ece(confidence, correct, n_bins):
    """The definition, row by row: sort, share correctness among ties, cut with array_split."""
    shared = [np.mean([r for c, r in zip(confidence, correct, strict=True) if c == a])
              for a in confidence]  # fmt: skip
    rows = sorted(zip(confidence, shared, strict=True))
    pieces = np.array_split(np.array(rows), min(n_bins, len(rows)))
    return sum(abs(piece[:, 0].sum() - piece[:, 1].sum()) for piece in pieces) / len(rows)


@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_equal_width_agrees_with_netcal(n_bins):
    c, r = draw_ece(5000)
    theirs = ECE(n_bins, detection=True).measure(c, r.astype(int))
    assert ece(c, r, n_bins=n_bins, binning="width") == pytest.approx(theirs, abs=ROUNDING)
    theirs = MCE(n_bins, detection=True).measure(c, r.astype(int))
    assert mce(c, r, n_bins=n_bins, binning="width") == pytest.approx(theirs, abs=ROUNDING)


@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_equal_size_agrees_with_netcal_where_the_bins_can_be_equal(n_bins):
    # netcal cuts at interpolated quantiles, which is the same when n_bins divides n and no two
    # confidences are equal.
    c, r = draw_ece(30 * 150)
    theirs = ECE(n_bins, equal_intervals=False, detection=True).measure(c, r.astype(int))
    assert ece(c, r, n_bins=n_bins) == pytest.approx(theirs, abs=ROUNDING)
    theirs = MCE(n_bins, equal_intervals=False, detection=True).measure(c, r.astype(int))
    assert mce(c, r, n_bins=n_bins) == pytest.approx(theirs, abs=ROUNDING)


@pytest.mark.parametrize("ties", [None, 2, 1, 0])
@pytest.mark.parametrize("n", [1, 2, 7, 14, 15, 16, 31, 200])
def test_equal_size_agrees_with_the_definition_row_by_row(n, ties):
    c, r = draw_ece(n, ties=ties, seed=n)
    assert ece(c, r) == pytest.approx(slow_ece(c, r, 15), abs=ROUNDING)


def test_the_examples_in_docstrings_run():
    done = doctest.testmod(importlib.import_module("shiftcal.metrics"))
    assert done.attempted > 0
    assert done.failed == 0


def test_ties_do_not_depend_on_the_order_of_rows():
    c, r = draw_ece(997, ties=1)
    order = np.random.default_rng(1).permutation(len(c))
    for binning in ("size", "width"):
        assert ece(c[order], r[order], binning=binning) == pytest.approx(
            ece(c, r, binning=binning), abs=ROUNDING
        )


@pytest.mark.parametrize("binning", ["size", "width"])
def test_every_row_is_in_one_bin_also_the_ends(binning):
    c = np.concatenate([[0.0, 1.0, 1.0], np.linspace(0, 1, 16)])
    table = bin_table(c, np.ones(len(c), bool), binning=binning)
    assert table.count.sum() == len(c)
    assert table.count[-1] > 0


REAL = {  # accuracy and equal-width ECE in percent, as the data's own notes print them
    "jcpeterson_densenet_BC_100_12_cifar10test": (95.62, 2.54),
    "jcpeterson_resnet_basic_110_cifar10test": (94.06, 4.13),
    "jcpeterson_vgg_15_BN_64_cifar10test": (93.18, 4.65),
    "jcpeterson_wrn_28_10_cifar10test": (96.24, 2.14),
    "netcal_densenet-bc-100-cifar-100": (75.41, 14.22),
}


@pytest.mark.parametrize("name", REAL)
def test_real_outputs_give_the_printed_digits(shared_data, name):
    with np.load(shared_data / "logits" / f"{name}.npz") as file:
        if "logits" in file:
            probs, labels = softmax(file["logits"]), file["labels"]
        else:
            probs, labels = file["predictions"], file["ground_truth"]
    correct = probs.argmax(axis=1) == labels
    accuracy, width = REAL[name]
    assert round(100 * correct.mean(), 2) == accuracy
    assert round(100 * ece(probs.max(axis=1), correct, binning="width"), 2) == width


@pytest.fixture
def rated():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(5, 0.3), 2000), rng.integers(0, 5, 2000)


def test_nll_is_log_loss(rated):
    assert nll(*rated) == pytest.approx(log_loss(rated[1], rated[0], labels=range(5)), rel=1e-12)


def test_accuracy_is_accuracy_score(rated):
    assert accuracy(*rated) == accuracy_score(rated[1], rated[0].argmax(axis=1))


def test_top1_brier_is_the_binary_score_of_being_right(rated):
    c, r = rated[0].max(axis=1), rated[0].argmax(axis=1) == rated[1]
    assert top1_brier(c, r) == pytest.approx(brier_score_loss(r, c), rel=1e-12)


def test_a_probability_of_zero_costs_what_the_smallest_float32_does():
    assert nll([[1.0, 0.0]], [1]) == pytest.approx(87.336545)
    assert nll([[1.0, 0.0], [0.5, 0.5]], [0, 1]) == pytest.approx(np.log(2) / 2)


@pytest.mark.parametrize("k", [2, 5])
def test_brier_is_scikit_learns(k):
    rng = np.random.default_rng(1)
    probs, labels = rng.dirichlet(np.ones(k), 400), rng.integers(0, k, 400)
    whole = ((probs - np.eye(k)[labels]) ** 2).sum(axis=1).mean()
    assert brier(probs, labels) == pytest.approx(whole, rel=1e-12)
    if "scale_by_half" in inspect.signature(brier_score_loss).parameters:  # scikit-learn 1.7
        theirs = brier_score_loss(labels, probs, labels=range(k), scale_by_half=False)
        assert brier(probs, labels) == pytest.approx(theirs, rel=1e-12)


def draw_ranked_metrics(n, *, ties=None, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.beta(6, 2, n)
    c = c if ties is None else np.round(c, ties)
    return c, rng.random(n) < c**1.3


def slow_aurc(c, r):
    """One order of the rows: mean risk over all coverages."""
    order = sorted(range(len(c)), key=lambda i: -c[i])
    errors = np.cumsum([not r[i] for i in order])
    return np.mean(errors / np.arange(1, len(c) + 1))


def test_aurc_agrees_with_the_definition_without_ties():
    c, r = draw_ranked_metrics(500)
    assert aurc(c, r) == pytest.approx(slow_aurc(c, r), abs=1e-12)


def test_aurc_with_ties_is_the_mean_over_all_their_orders():
    c = np.array([0.9, 0.7, 0.7, 0.7, 0.4, 0.4])
    r = np.array([True, False, True, True, False, True])
    orders = [list(order) for order in itertools.permutations(range(6))]
    mean = np.mean([slow_aurc(c[order], r[order]) for order in orders])
    assert aurc(c, r) == pytest.approx(mean, abs=1e-12)


def test_ks_error_agrees_with_the_definition_without_ties():
    c, r = draw_ranked_metrics(500)
    order = np.argsort(c)
    path = np.cumsum(c[order] - r[order])
    assert ks_error(c, r) == pytest.approx(np.abs(path).max() / 500, abs=1e-12)


def test_ks_error_looks_only_at_ends_of_ties():
    # In any one order the path wanders inside the tie; between ties it is at 0.1 * 4 / 4.
    c, r = np.full(4, 0.6), np.array([True, False, True, False])
    assert ks_error(c, r) == pytest.approx(0.1)
    for order in itertools.permutations(range(4)):
        assert ks_error(c[list(order)], r[list(order)]) == pytest.approx(0.1)


def written_out(confidence, correct):
    """The definition with nothing clever: mirror images of every row, a fine sum as integral."""
    t = (np.arange(4000) + 0.5) / 4000

    def excess(sigma):
        smoothed = np.zeros_like(t)
        for c, r in zip(confidence, correct, strict=True):
            for mirror in range(-4, 5):
                for image in (c, -c):
                    smoothed += (c - r) * norm.pdf(t, 2 * mirror + image, sigma)
        return np.abs(smoothed / len(confidence)).mean() - sigma

    return brentq(excess, 1e-3, 1.0, xtol=1e-7)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_agrees_with_the_definition_written_out(seed):
    rng = np.random.default_rng(seed)
    c = rng.beta(3, 1, 30)
    r = rng.random(30) < c**3
    # The grid of 64 points a bandwidth promises 1 part in 1,000.
    assert smooth_ece(c, r) == pytest.approx(written_out(c, r), rel=1e-3)


@pytest.mark.parametrize("n", [200, 3000, 100_000])
@pytest.mark.parametrize("power", [1.0, 1.4, 3.0])
def test_it_agrees_with_relplot(n, power):
    rng = np.random.default_rng(n)
    c = rng.beta(5, 2, n)
    r = rng.random(n) < c**power
    assert not relplot.config.use_logit_scaling  # the same kernel as ours
    # relplot looks for the bandwidth in steps of 1/1024, above 0.001 only, and integrates on 200
    # points, counting the two outermost in full.
    assert smooth_ece(c, r) == pytest.approx(relplot.smECE(c, r.astype(float)), rel=0.02, abs=1e-3)


def test_it_finds_small_errors_that_need_a_finer_grid():
    # Two points 0.0004 apart, one right and one wrong, on top of a perfect majority: about 0.001,
    # far below the spacing of the first grid times 64.
    c = np.concatenate([np.ones(4000), [0.5, 0.5004]])
    r = np.concatenate([np.ones(4000, bool), [True, False]])
    fine = (np.arange(2_000_000) + 0.5) / 2_000_000

    def excess(sigma):
        density = 0.5004 * norm.pdf(fine, 0.5004, sigma) - 0.5 * norm.pdf(fine, 0.5, sigma)
        return np.abs(density).mean() / len(c) - sigma

    assert smooth_ece(c, r) == pytest.approx(brentq(excess, 1e-6, 0.01, xtol=1e-9), rel=2e-3)


def test_the_ends_of_the_scale():
    assert smooth_ece([1.0, 0.0, 1.0], [True, False, True]) == 0.0
    assert smooth_ece([1.0, 1.0], [False, False]) == 1.0
    assert smooth_ece([0.0], [True]) == 1.0
    assert smooth_ece([0.5], [True]) == pytest.approx(0.5)


def test_a_mask_of_bytes_that_was_viewed_as_booleans_is_true_or_false():
    rng = np.random.default_rng(0)
    confidence, mask = rng.random(1000), np.where(rng.random(1000) < 0.5, 255, 0).astype(np.uint8)
    for n_bins in (1, 15):
        viewed = ece(confidence, mask.view(np.bool_), n_bins=n_bins)
        assert viewed == ece(confidence, mask == 255, n_bins=n_bins)


def test_arrays_that_are_not_aligned_are_copied():
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(100), rng.random(100) < 0.5
    unaligned = np.frombuffer(b"x" + confidence.tobytes(), np.uint8)[1:].view(np.float64)
    assert not unaligned.flags.aligned
    assert ece(unaligned, correct) == ece(confidence, correct)
