"""Hysteresis: noise about a limit makes one event, not many."""

from __future__ import annotations

import numpy as np
import pytest
from monitored import monitor, rows

from shiftcal.monitoring._phases import Phase, next_phase

LOWER, PATIENCE = 0.7, 3


def walked(ratios, outsides=(), *, start="normal", full=True, patience=PATIENCE):
    """The number of the look and the kind of every event, and the phase at the end."""
    phase, events = Phase(start), []
    padded = [*outsides, *[0.0] * (len(ratios) - len(outsides))]
    for look, (ratio, outside) in enumerate(zip(ratios, padded, strict=True), start=1):
        phase, kind = next_phase(phase, ratio, outside, full=full, lower=LOWER, patience=patience)
        if kind is not None:
            events.append((look, kind))
    return events, phase


def test_one_look_at_the_limit_raises_an_alarm_and_none_below_it():
    assert walked([0.99, 1.0])[0] == [(2, "shift-began")]
    assert walked([0.999] * 50)[0] == []


def test_a_ratio_that_jumps_about_the_limit_makes_one_event():
    noisy = 1.0 + 0.25 * (-1.0) ** np.arange(100)
    assert walked(noisy.tolist())[0] == [(1, "shift-began")]


@pytest.mark.parametrize("patience", [1, 3, 7])
def test_a_return_takes_looks_in_a_row_at_or_below_the_lower_limit(patience):
    near = [LOWER] * patience
    almost = [1.2, *near[1:], 0.71]
    events, phase = walked([*almost, *almost, *near], start="shifted", patience=patience)
    assert events == [(3 * len(near) + 2, "back-to-normal")]
    assert phase == Phase("normal")


@pytest.mark.parametrize("patience", [1, 3, 7])
def test_the_way_out_of_the_bank_and_back_takes_looks_in_a_row(patience):
    far = [1.5] * 100
    almost = [0.9, *[1.0] * (patience - 1)]
    out = [*almost, *almost, 0.9, *[1.0] * patience]
    back = [*[0.9] * (patience - 1), 1.0, *[0.9] * patience]
    events, phase = walked(
        far[: len(out + back)], [*out, *back], start="shifted", patience=patience
    )
    assert events == [(len(out), "outside-bank"), (len(out + back), "back-inside")]
    assert phase == Phase("shifted")


def test_a_distance_that_jumps_about_the_reach_makes_no_event():
    about = (1.0 + 0.2 * (-1.0) ** np.arange(60)).tolist()
    for state in ("shifted", "outside-bank"):
        assert walked([1.5] * 60, about, start=state)[0] == []


def test_only_a_shifted_stream_can_be_outside_the_bank():
    assert walked([0.5] * 9, [9.0] * 9)[0] == []
    assert walked([1.5] * 4, [9.0] * 4)[0] == [(1, "shift-began"), (4, "outside-bank")]


def test_from_outside_the_bank_a_stream_may_go_straight_back_to_normal():
    events, phase = walked([0.5] * 3, [9.0] * 3, start="outside-bank")
    assert events == [(3, "back-to-normal")]
    assert phase == Phase("normal")


def test_a_window_that_is_not_full_is_filling_until_it_is():
    assert walked([0.5], start="filling", full=False)[1] == Phase("filling")
    assert walked([0.5], start="filling")[1] == Phase("normal")
    assert walked([0.5] * 3, start="shifted", full=False)[1] == Phase("filling")


def test_a_stream_in_which_bursts_come_and_go_is_told_once():
    watch = monitor("sac")
    watch.feed(rows(1000, seed=1))
    kinds, raised = [], 0
    for burst in range(20):
        for strength, seed in ((0.7, burst), (1.3, 100 + burst)):
            update = watch.feed(rows(100, strength, seed=seed))
            kinds += [event.kind for event in update.events]
            raised += update.statistic >= 1
    assert raised > 20
    assert kinds == ["shift-began"]
