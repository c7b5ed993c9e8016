"""Bisection for a strength of a given accuracy."""

from __future__ import annotations

import math

import pytest

from shiftcal.surrogates.ladder import StrengthSearch


def search(curve, *, ends=(0.0, 1.0), whole=False, clean=1.0):
    calls = []

    def measure(strength):
        calls.append(strength)
        return curve(strength)

    return StrengthSearch(measure, ends=ends, whole=whole, clean=clean), calls


def test_no_strength_is_measured_twice_and_the_next_search_starts_from_the_last():
    found, calls = search(lambda s: 1 - s)
    found.nearest(0.25, 0.001)
    strength, accuracy = found.nearest(0.375, 0.001)
    assert (strength, accuracy) == (0.625, 0.375)
    assert calls == [1.0, 0.5, 0.75, 0.625]
    assert found.nearest(0.5, 0.001) == (0.5, 0.5)
    assert len(calls) == 4
    assert found.tried() == ((0.5, 0.5), (0.625, 0.375), (0.75, 0.25), (1.0, 0.0))


def test_decades_are_halved_in_their_logarithm():
    found, calls = search(lambda s: math.log10(s) / 4, ends=(1e4, 1.0))
    assert found.nearest(0.5, 1e-9)[0] == pytest.approx(100.0)
    assert len(calls) == 2


def test_whole_numbers_stay_whole_and_the_search_ends_between_two():
    found, calls = search(lambda s: s / 100, ends=(100.0, 1.0), whole=True)
    assert found.nearest(0.305, 1e-6)[0] in (30.0, 31.0)
    assert all(s == int(s) for s in calls)
    assert len(calls) < 12


def test_a_jump_ends_the_search_at_the_nearer_side():
    found, calls = search(lambda s: 0.9 if s < 0.3 else 0.2)
    strength, accuracy = found.nearest(0.4, 0.05)
    assert accuracy == 0.2
    assert strength >= 0.3
    assert len(calls) < 20


def test_a_curve_that_rises_on_the_way_is_met_at_one_of_its_crossings():
    def curve(s):
        return 1 - s + 0.1 * math.sin(20 * s) * (1 - s)

    found, _ = search(curve)
    for wanted in (0.8, 0.6, 0.4, 0.2):
        strength, accuracy = found.nearest(wanted, 0.01)
        assert accuracy == curve(strength) == pytest.approx(wanted, abs=0.01)
