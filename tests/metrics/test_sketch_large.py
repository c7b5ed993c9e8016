"""A stream of ten million rows."""

from __future__ import annotations

import numpy as np
import pytest

from shiftcal.metrics import MetricSketch, ece

N = 10_000_000


def stream(shape, rng):
    """Ten shards of confidences; calibrated, so that neighbouring bins err to different sides."""
    draws = {
        "sure": lambda n: rng.beta(12, 1.2, n),
        "spread": lambda n: rng.beta(5, 2, n),
        "very sure": lambda n: 1 / (1 + np.exp(-np.abs(rng.normal(3, 4, n)))),
    }
    for _ in range(10):
        c = draws[shape](N // 10).astype(np.float32)
        yield c, rng.random(len(c)) < c


@pytest.mark.parametrize("shape", ["sure", "spread", "very sure"])
def test_ten_million_rows_give_the_equal_size_ece_within_a_hundred_thousandth(shape):
    sketch, shards = MetricSketch(), []
    for shard in stream(shape, np.random.default_rng(0)):
        part = MetricSketch()
        part.update_top1(*shard)
        sketch.merge(part)
        shards.append(shard)
    exact = ece(*map(np.concatenate, zip(*shards, strict=True)))
    assert sketch.n == N
    assert sketch.ece() == pytest.approx(exact, abs=1e-5)
    low, high = sketch.ece_range()
    assert low - 1e-9 <= exact <= high + 1e-9
    assert high - low < 1e-4


def test_a_model_that_is_too_sure_is_measured_to_nine_digits():
    rng = np.random.default_rng(1)
    c = rng.beta(5, 2, N // 5)
    r = rng.random(len(c)) < c**1.2
    sketch = MetricSketch()
    sketch.update_top1(c, r)
    low, high = sketch.ece_range()
    assert high - low < 2e-9
    assert low <= ece(c, r) <= high
