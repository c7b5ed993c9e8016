"""ECE against other libraries, a slow version, hand examples and the usual bugs."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
from netcal.metrics import ECE, MCE

from shiftcal.metrics import bin_table, ece, mce
from shiftcal.numerics.softmax import softmax

# Sums of thousands of doubles in another order.
ROUNDING = 1e-12


def draw(n, *, power=1.3, seed=0, ties=None):
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
    c, r = draw(5000)
    theirs = ECE(n_bins, detection=True).measure(c, r.astype(int))
    assert ece(c, r, n_bins=n_bins, binning="width") == pytest.approx(theirs, abs=ROUNDING)
    theirs = MCE(n_bins, detection=True).measure(c, r.astype(int))
    assert mce(c, r, n_bins=n_bins, binning="width") == pytest.approx(theirs, abs=ROUNDING)


@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_equal_size_agrees_with_netcal_where_the_bins_can_be_equal(n_bins):
    # netcal cuts at interpolated quantiles, which is the same when n_bins divides n and no two
    # confidences are equal.
    c, r = draw(30 * 150)
    theirs = ECE(n_bins, equal_intervals=False, detection=True).measure(c, r.astype(int))
    assert ece(c, r, n_bins=n_bins) == pytest.approx(theirs, abs=ROUNDING)
    theirs = MCE(n_bins, equal_intervals=False, detection=True).measure(c, r.astype(int))
    assert mce(c, r, n_bins=n_bins) == pytest.approx(theirs, abs=ROUNDING)


@pytest.mark.parametrize("ties", [None, 2, 1, 0])
@pytest.mark.parametrize("n", [1, 2, 7, 14, 15, 16, 31, 200])
def test_equal_size_agrees_with_the_definition_row_by_row(n, ties):
    c, r = draw(n, ties=ties, seed=n)
    assert ece(c, r) == pytest.approx(slow_ece(c, r, 15), abs=ROUNDING)


def test_a_hand_example():
    c, r = [0.6, 0.7, 0.8, 0.9], [1, 0, 1, 1]
    assert ece(c, r, n_bins=2) == pytest.approx(0.5 * abs(0.65 - 0.5) + 0.5 * abs(0.85 - 1.0))
    assert mce(c, r, n_bins=4) == pytest.approx(0.7)
    # Width: (0.5, 0.75] holds 0.6 and 0.7, (0.75, 1] the others.
    assert ece(c, r, n_bins=4, binning="width") == pytest.approx(0.15)


def test_the_examples_in_docstrings_run():
    done = doctest.testmod(importlib.import_module("shiftcal.metrics"))
    assert done.attempted > 0
    assert done.failed == 0


def test_ties_do_not_depend_on_the_order_of_rows():
    c, r = draw(997, ties=1)
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


def test_a_known_miscalibration_is_found():
    rng = np.random.default_rng(3)
    c = rng.uniform(0.5, 1.0, 200_000)
    r = rng.random(len(c)) < c - 0.1
    # Standard error of the accuracy is 0.001; every bin errs to the same side.
    assert ece(c, r) == pytest.approx(0.1, abs=0.004)
    assert mce(c, r) == pytest.approx(0.1, abs=0.02)


def test_the_floor_of_a_calibrated_predictor_is_as_documented():
    rng = np.random.default_rng(4)
    values = []
    for _ in range(40):
        c = rng.beta(12, 1.2, 5000)
        values.append(ece(c, rng.random(5000) < c))
    # The spread of one value is 0.002, of the mean of 40 a sixth of that.
    assert np.mean(values) == pytest.approx(0.011, abs=0.001)
    formula = 0.8 * np.sqrt(c * (1 - c)).mean() * np.sqrt(15 / 5000)
    assert np.mean(values) == pytest.approx(formula, rel=0.1)


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
