"""Compiled answers are those of the memory."""

from __future__ import annotations

import numpy as np
import pytest
from monitored import method, rows

from shiftcal.methods.rehearsals import FixedSize, Grouped, row_moments


def grouped(logits, groups):
    moments = row_moments(logits).reshape(groups, -1, 2 + 2 * logits.shape[1])
    counts = np.full(groups, moments.shape[1])
    return Grouped(moments.sum(axis=1), counts, float((moments[..., 0] ** 2).sum()))


@pytest.mark.parametrize("n", [60, 100, 500, 1200, 5000])
@pytest.mark.parametrize("strength", [1.3, 0.7, 0.1])
def test_answers_are_those_of_the_memory_at_every_size(n, strength):
    memory = method("rehearsal").memory_
    target = grouped(rows(n, strength, seed=n), 20)
    wanted = memory.answer(target, np.random.default_rng(0))
    ready = FixedSize(memory, n, groups=20, seed=0)
    found = ready.answer(target.sums.sum(axis=0) / n, lambda: target)
    np.testing.assert_allclose(found, [float(value) for value in wanted], rtol=1e-9, atol=1e-12)


def test_a_class_that_never_has_any_probability_counts_nothing():
    memory = method("rehearsal").memory_
    means = grouped(rows(200, seed=1), 20).sums.sum(axis=0) / 200
    means[[2, 8]] = 0.0  # p and p² of the first class
    from shiftcal.methods.rehearsals import output_statistics

    found = FixedSize(memory, 200, groups=20, seed=0).answer(means)
    wanted = memory.answers(output_statistics(means), 200)
    np.testing.assert_allclose(found, [float(value) for value in wanted], rtol=1e-9)
