"""The likelihood's value and derivatives, compiled and not."""

from __future__ import annotations

import numpy as np
import pytest
from map_data import draw_logits

from shiftcal.numerics import jit as _block_sums
from shiftcal.numerics import temperature as softmax_moments

# Sums of a few hundred roundings of single and of double precision.
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}


def both_paths(monkeypatch, data, beta):
    """The same moments from the compiled kernel and from numpy."""
    monkeypatch.setattr(softmax_moments, "SMALL", 0)
    compiled = softmax_moments.softmax_moments(data, beta)
    monkeypatch.setattr(softmax_moments, "SMALL", data[0].size + 1)
    return compiled, softmax_moments.softmax_moments(data, beta)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (128, 33), (300, 10)])
@pytest.mark.parametrize("beta", [0.3, 1.7, 80.0])
def test_the_kernel_agrees_with_numpy(monkeypatch, dtype, n, k, beta):
    logits, labels = draw_logits(n, k, temperature=1.3, seed=n + k)
    data = (logits.astype(dtype), labels, None)
    compiled, plain = both_paths(monkeypatch, data, beta)
    # A slope near zero is a difference of larger numbers, hence the absolute part.
    assert np.allclose(compiled, plain, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_agrees_with_numpy_when_rows_have_weights(monkeypatch, dtype):
    logits, labels = draw_logits(500, 4, temperature=2.0, seed=3)
    weights = np.random.default_rng(4).random(500) * (np.arange(500) % 3 > 0)
    compiled, plain = both_paths(monkeypatch, (logits.astype(dtype), labels, weights), 0.6)
    assert compiled == pytest.approx(plain, rel=TOLERANCE[dtype])


def test_the_derivatives_are_those_of_the_value(overconfident):
    def at(r):
        return softmax_moments.softmax_moments((*overconfident, None), 0.5 * (1 + r))

    h = 1e-4  # central differences: error h**2, rounding 1e-16 / h
    here = at(0.0)
    assert here.slope == pytest.approx((at(h).loss - at(-h).loss) / (2 * h), rel=1e-6)
    slopes = [at(r).slope / (1 + r) for r in (-h, h)]
    assert here.curvature == pytest.approx((slopes[1] - slopes[0]) / (2 * h), rel=1e-6)
    curvatures = [at(r).curvature / (1 + r) ** 2 for r in (-h, h)]
    assert here.third == pytest.approx((curvatures[1] - curvatures[0]) / (2 * h), rel=1e-6)


def test_small_terms_beside_a_large_one_are_not_lost_in_single_precision(monkeypatch):
    # Every e is 2e-8: alone it vanishes beside the 1 of the maximum, all together are 1e-4. The
    # 31 classes that are summed with the maximum are lost, 6e-7; more must not be.
    logits = np.full((256, 5000), -17.7, dtype=np.float32)
    logits[:, 0] = 0
    data = (logits, np.zeros(256, dtype=np.intp), None)
    compiled, plain = both_paths(monkeypatch, data, 1.0)
    assert compiled.loss == pytest.approx(plain.loss, abs=1e-6)
    assert compiled.slope == pytest.approx(plain.slope, rel=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_of_any_size_neither_overflow_nor_warn(monkeypatch, dtype):
    logits, labels = draw_logits(200, 5, temperature=1.0, seed=1)
    for scale in (1e-30, 1e4, 1e30):
        for moments in both_paths(monkeypatch, ((scale * logits).astype(dtype), labels, None), 1.0):
            assert np.all(np.isfinite(moments))


def test_a_part_of_the_blocks_gives_the_moments_of_those_rows(monkeypatch):
    monkeypatch.setattr(softmax_moments, "SMALL", 0)
    logits, labels = draw_logits(1000, 3, temperature=2.0, seed=9)
    rows = np.arange(1000) // _block_sums.ROWS % 4 == 0
    part = softmax_moments.softmax_moments((logits, labels, None), 0.7, every=4)
    alone = softmax_moments.softmax_moments((logits[rows], labels[rows], None), 0.7)
    assert part == pytest.approx(alone, rel=1e-12)
