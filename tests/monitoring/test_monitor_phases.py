"""Hysteresis: noise about a limit makes one event, not many."""

from __future__ import annotations

import pytest

from shiftcal.monitoring.stream import Phase, next_phase

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


def test_only_a_shifted_stream_can_be_outside_the_bank():
    assert walked([0.5] * 9, [9.0] * 9)[0] == []
    assert walked([1.5] * 4, [9.0] * 4)[0] == [(1, "shift-began"), (4, "outside-bank")]


def test_a_window_that_is_not_full_is_filling_until_it_is():
    assert walked([0.5], start="filling", full=False)[1] == Phase("filling")
    assert walked([0.5], start="filling")[1] == Phase("normal")
    assert walked([0.5] * 3, start="shifted", full=False)[1] == Phase("filling")
