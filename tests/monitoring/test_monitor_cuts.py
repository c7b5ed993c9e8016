"""Nothing depends on how a stream is cut into batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitored import fed, monitor, rows

from shiftcal.numerics.jit import to_read

STREAM = np.concatenate([rows(330, seed=1), rows(400, 0.6, seed=2), rows(470, seed=3)])
WINDOW = {"rows": 200, "blocks": 5}


def outcome(updates):
    """All that came out, to the bit."""
    return (
        np.concatenate([u.confidence for u in updates]).tobytes(),
        np.concatenate([u.predicted for u in updates]).tobytes(),
        np.concatenate([u.probs for u in updates]).tobytes(),
        [e for u in updates for e in u.events],
        updates[-1].state,
        updates[-1].statistic,
        updates[-1].temperature,
        updates[-1].outside,
    )


@pytest.fixture(scope="module", params=["rehearsal", "sac"])
def at_once(request):
    watch = monitor(request.param, **WINDOW)
    return request.param, outcome([watch.feed(STREAM, probabilities=True)]), watch.state_dict()


@given(cuts=st.sets(st.integers(1, len(STREAM) - 1), max_size=12))
def test_any_cut_gives_the_same_bits(at_once, cuts):
    method, wanted, state = at_once
    watch = monitor(method, **WINDOW)
    assert outcome(fed(watch, STREAM, *sorted(cuts), probabilities=True)) == wanted
    assert watch.state_dict() == state


@pytest.mark.parametrize("size", [1, 7, 256])
def test_row_by_row_and_in_batches_are_the_same(at_once, size):
    method, wanted, state = at_once
    watch = monitor(method, **WINDOW)
    cuts = range(size, len(STREAM), size)
    assert outcome(fed(watch, STREAM, *cuts, probabilities=True)) == wanted
    assert watch.state_dict() == state
    assert wanted[3], "no event: nothing was asked"


@pytest.mark.parametrize("k", [2, 3, 17, 33])
def test_a_row_has_the_same_bits_wherever_it_stands(k):
    from shiftcal.monitoring.stream_kernels import pass_rows

    logits = 4 * np.random.default_rng(k).standard_normal((150, k))

    def passed(part):
        sums, n = np.zeros(2 * k + 4, np.int64), len(part)
        confidence, predicted, probs = np.empty(n), np.empty(n, np.intp), np.empty((n, k))
        pass_rows(to_read(part), 1.7, sums, confidence, predicted, probs)
        return sums, confidence, probs

    whole = passed(logits)
    for start in (0, 1, 5, 31, 32, 100):
        _, confidence, probs = passed(logits[start : start + 41])
        np.testing.assert_array_equal(confidence, whole[1][start : start + 41])
        np.testing.assert_array_equal(probs, whole[2][start : start + 41])
    single = sum(passed(logits[i : i + 1])[0] for i in range(150))
    np.testing.assert_array_equal(single, whole[0])
    shuffled = np.random.default_rng(0).permutation(150)
    np.testing.assert_array_equal(passed(logits[shuffled])[0], whole[0])
