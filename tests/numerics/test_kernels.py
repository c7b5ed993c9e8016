"""Compiled kernels against plain numpy, on every instruction set, with bad input and in threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from map_data import draw_logits
from scipy.special import softmax

from shiftcal import _kernels
from shiftcal.numerics import blocks
from shiftcal.numerics.temperature import brier_slope, softmax_moments

# Sums of a few hundred roundings of single and of double precision.
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}


def moments_by_definition(data, beta):
    logits, labels, weights = data
    beta = float(logits.dtype.type(beta / np.log(2))) * np.log(2)  # as the kernel rounds it
    x = beta * logits.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    p = softmax(x, axis=1)
    mean = (p * x).sum(axis=1, keepdims=True)
    of_label = x[np.arange(len(x)), labels]
    log_sum = np.log(np.exp(x).sum(axis=1))
    rows = [
        log_sum - of_label,
        mean[:, 0] - of_label,
        (p * (x - mean) ** 2).sum(axis=1),
        (p * (x - mean) ** 3).sum(axis=1),
        -of_label,
    ]
    return beta, *(np.average(row, weights=weights) for row in rows)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (128, 33), (300, 10), (257, 3)])
@pytest.mark.parametrize("beta", [0.3, 1.7, 80.0])
def test_moments_are_their_definition(dtype, n, k, beta, weighted):
    logits, labels = draw_logits(n, k, temperature=1.3, seed=n + k)
    weights = np.random.default_rng(4).random(n) + (np.arange(n) % 3 > 0) if weighted else None
    data = (logits.astype(dtype), labels, weights)
    # A slope near zero is a difference of larger numbers, hence the absolute part.
    near = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    np.testing.assert_allclose(
        softmax_moments(data, beta), moments_by_definition(data, beta), **near
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (300, 10)])
def test_the_brier_score_and_its_slope_are_their_definition(dtype, n, k):
    logits, labels = draw_logits(n, k, temperature=1.3, seed=n + k)
    data = (logits.astype(dtype), labels, None)

    def score(beta):
        miss = softmax(beta * data[0].astype(np.float64), axis=1)
        miss[np.arange(n), labels] -= 1
        return (miss**2).sum(axis=1).mean()

    found, h = brier_slope(data, 0.8), 1e-5
    assert found.loss == pytest.approx(score(0.8), rel=TOLERANCE[dtype], abs=TOLERANCE[dtype])
    slope = (score(0.8 * np.exp(h)) - score(0.8 * np.exp(-h))) / (2 * h)
    assert found.slope == pytest.approx(slope, abs=2e-7)


def test_small_terms_next_to_a_large_one_are_not_lost_in_single_precision():
    # Every e is 2e-8: alone it vanishes next to the 1 of the maximum, all together are 1e-4. The
    # 31 classes that are summed with the maximum are lost, 6e-7; more must not be.
    logits = np.full((256, 5000), -17.7, dtype=np.float32)
    logits[:, 0] = 0
    data = (logits, np.zeros(256, dtype=np.int64), None)
    found, exact = softmax_moments(data, 1.0), moments_by_definition(data, 1.0)
    assert found.loss == pytest.approx(exact[1], abs=1e-6)
    assert found.slope == pytest.approx(exact[2], rel=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_of_any_size_neither_overflow_nor_warn(dtype):
    logits, labels = draw_logits(200, 5, temperature=1.0, seed=1)
    for scale in (1e-30, 1e4, 1e30):
        assert np.isfinite(
            softmax_moments(((scale * logits).astype(dtype), labels, None), 1.0)
        ).all()


def test_a_part_of_the_blocks_gives_the_moments_of_those_rows():
    logits, labels = draw_logits(1000, 3, temperature=2.0, seed=9)
    rows = np.arange(1000) // blocks.ROWS % 4 == 0
    part = softmax_moments((logits, labels, None), 0.7, every=4)
    alone = softmax_moments((logits[rows], labels[rows], None), 0.7)
    assert part == pytest.approx(alone, rel=1e-12)


SUMS = """
import numpy as np
from shiftcal import _kernels
from shiftcal.numerics.temperature import ladder_sums, softmax_moments, brier_slope
from shiftcal.numerics.binning import equal_size_bins, equal_width_bins
rng = np.random.default_rng(0)
z, y = 3 * rng.standard_normal((40_000, 7)), rng.integers(0, 7, 40_000)
c = rng.random(40_000)
out = [_kernels.simd]
for dtype in (np.float32, np.float64):
    data = (z.astype(dtype), y, None)
    out += [*softmax_moments(data, 0.7), *brier_slope(data, 0.7)]
    out += [*ladder_sums(data[0])[0][::17]]
    for bins in (equal_size_bins, equal_width_bins):
        out += [*bins(c.astype(dtype), c < 0.4, 15).confidence]
print(*map(str, out))
"""


def test_every_instruction_set_gives_the_same_sums():
    found = {}
    for level in ("baseline", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", SUMS],
            env={**os.environ, "SHIFTCAL_SIMD": level},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and "no more than this processor has" in done.stderr:
            continue
        assert done.returncode == 0, done.stderr
        name, *numbers = done.stdout.split()
        assert name == level
        found[level] = np.array(numbers, float)
    for numbers in found.values():
        np.testing.assert_allclose(numbers, found["baseline"], rtol=1e-8)


def test_an_unknown_instruction_set_is_an_error():
    done = subprocess.run(
        [sys.executable, "-c", "from shiftcal import _kernels"],
        env={**os.environ, "SHIFTCAL_SIMD": "fast"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "SHIFTCAL_SIMD must be baseline, avx2 or avx512" in done.stderr


Z, Y, W = np.zeros((4, 3)), np.zeros(4, np.int64), np.empty(0)
BLOCKS, OUT = np.zeros(1, np.int64), np.zeros((1, 6))
FROZEN = OUT.copy()
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((Z, Y, W, 1.0, BLOCKS), TypeError, "takes 6 arguments, got 5"),
        ((Z.astype(np.float32), Y, W, 1.0, BLOCKS, OUT), TypeError, "argument 0 must be .* f8"),
        ((Z, Y.astype(np.int32), W, 1.0, BLOCKS, OUT), TypeError, "argument 1 must be .* i8"),
        ((Z, Y[:3], W, 1.0, BLOCKS, OUT), ValueError, "axis 0 of argument 1 must be 4, got 3"),
        ((Z[0], Y, W, 1.0, BLOCKS, OUT), ValueError, "argument 0 must have 2 axes, got 1"),
        ((Z, Y, np.ones(3), 1.0, BLOCKS, OUT), ValueError, "do not fit together"),
        ((Z, Y, W, "one", BLOCKS, OUT), TypeError, "real number"),
        ((np.zeros((3, 4)).T, Y, W, 1.0, BLOCKS, OUT), ValueError, "contiguous"),
        ((Z, Y, W, 1.0, BLOCKS, FROZEN), ValueError, "read-only"),
        (([1.0], Y, W, 1.0, BLOCKS, OUT), TypeError, "bytes-like"),
    ],
)
def test_arguments_are_checked_before_a_kernel_runs(arguments, error, words):
    with pytest.raises(error, match=words):
        _kernels.moments_f8(*arguments)


@pytest.mark.parametrize("processors", [1, 3])
@pytest.mark.parametrize(("n", "least"), [(0, 1), (1, 1), (7, 1), (7, 3), (100, 9), (100, 200)])
def test_the_parts_cover_everything_once(monkeypatch, processors, n, least):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(processors), raising=False)
    seen = [0] * n

    def work(start, stop):
        for i in range(start, stop):
            seen[i] += 1

    blocks.in_parts(work, n, least=least)
    assert seen == [1] * n


def test_threads_are_as_many_as_processors_or_as_few_as_asked_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert blocks.thread_count() == 4
    for wanted, given in (("1", 1), ("3", 3), ("9", 4), ("0", 1), ("", 4), ("two", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert blocks.thread_count() == given
