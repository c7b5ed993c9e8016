"""Blocks so large that few looks are made."""

from __future__ import annotations

from monitored import bank

from shiftcal.monitoring import Sliding
from shiftcal.monitoring._detector import learn
from shiftcal.monitoring._scales import scales_of


def test_no_more_than_one_look_in_twenty_is_due_for_an_alarm():
    scales = scales_of(Sliding(rows=500_000, blocks=10).plan())
    found = learn(bank(), scales, false_alarms=100.0, patience=3, seed=0)
    # 100 per 100,000 rows would be fifty at every look
    assert found.limits.expected <= 0.05 * 1e5 / scales.block
    assert found.limits.lower <= 0.9
