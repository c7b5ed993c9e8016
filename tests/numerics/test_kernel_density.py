"""Kernel densities with ends, against scipy's of the data with its mirror images."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from shiftcal.numerics.samples import folded_density, gathered, scott_width


def drawn(n, seed=3):
    return 0.25 + 0.75 * np.random.default_rng(seed).beta(4.0, 0.8, n)


def test_it_is_scipys_estimate_of_the_data_with_both_mirror_images():
    values, points = drawn(500), np.linspace(0.25, 1, 300)
    width = scott_width(values, least=0.001)
    assert width == pytest.approx(
        values.std(ddof=1) * stats.gaussian_kde(values).scotts_factor(), rel=1e-12
    )
    mirrored = np.concatenate([values, 0.5 - values, 2 - values])
    theirs = stats.gaussian_kde(mirrored, bw_method=width / mirrored.std(ddof=1))
    ours = folded_density(values, points, width=width, low=0.25, high=1.0)
    assert ours == pytest.approx(3 * theirs(points), rel=1e-9)
    assert trapezoid(ours, points) == pytest.approx(1, abs=1e-3)


def test_without_an_upper_end_nothing_is_folded_there():
    points = np.linspace(0, 1, 5)
    ours = folded_density(np.array([0.9]), points, width=0.1, low=0.0)
    assert ours == pytest.approx(stats.norm(0.9, 0.1).pdf(points), abs=1e-12)


def test_counts_are_repetitions():
    values, points = np.array([0.3, 0.6, 0.9]), np.linspace(0, 1, 50)
    counts = np.array([2, 1, 5])
    ends = {"width": 0.05, "low": 0.0, "high": 1.0}
    once = folded_density(np.repeat(values, counts), points, **ends)
    assert folded_density(values, points, counts=counts, **ends) == pytest.approx(once, rel=1e-12)


def test_gathered_values_keep_number_and_mean_and_next_to_all_of_the_density():
    values, points = drawn(30_000), np.linspace(0.25, 1, 200)
    means, counts = gathered(values, cells=2000)
    assert counts.sum() == 30_000
    assert len(means) <= 2000
    assert means @ counts / 30_000 == pytest.approx(values.mean(), rel=1e-12)
    ends = {"width": 0.005, "low": 0.25, "high": 1.0}
    exact = folded_density(values, points, **ends)
    near = folded_density(means, points, counts=counts, **ends)
    # A cell is a fourteenth of a kernel wide: second order in that, 1/14**2/24
    assert np.abs(near - exact).max() < 5e-4 * exact.max()


def test_few_values_are_gathered_exactly():
    means, counts = gathered(np.array([0.7, 0.2, 0.7]), cells=2000)
    assert means.tolist() == [0.2, 0.7]
    assert counts.tolist() == [1, 2]


def test_values_that_are_all_alike_are_one():
    means, counts = gathered(np.full(5000, 0.7), cells=2000)
    assert means.tolist() == [0.7]
    assert counts.tolist() == [5000]


def test_one_value_has_the_least_width():
    assert scott_width(np.array([0.4]), least=0.02) == 0.02
