"""Smooth ECE against the definition written out and against the authors' package."""

from __future__ import annotations

import numpy as np
import pytest
import relplot
from scipy.optimize import brentq
from scipy.stats import norm

from shiftcal.metrics import smooth_ece


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
