"""Two variants compared within splits: what counts as clearly larger, and how a claim fares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from study_records import record

from shiftcal.studies.comparing import below, clearly_above, difference, verdict


def compared(one, two):
    return difference(
        [record(split=s, ece=ece) for s, ece in enumerate(one)],
        [record(split=s, ece=ece, variant="ts") for s, ece in enumerate(two)],
    )


def test_a_difference_is_taken_within_each_split():
    one, two = np.array([0.11, 0.21, 0.34]), np.array([0.1, 0.2, 0.3])
    found = compared(one, two)
    ends = stats.t.interval(0.95, 2, (one - two).mean(), stats.sem(one - two))
    assert (found.low, found.high) == pytest.approx(ends)
    assert found.splits == pytest.approx(one - two)


def test_without_a_partner_there_is_no_difference():
    assert difference([record(split=0)], [record(split=1, variant="ts")]) is None


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ((0.02, 0.021, 0.022), True),  # the interval is above 0
        ((0.02, 0.02, 0.02, 0.02, 0.13), True),  # all five are
        ((0.02, 0.02, 0.02, 0.13), False),  # four above 0 are no rare event
        ((0.02, 0.02, 0.02, -0.001, 0.13), False),
        ((-0.02, -0.021, -0.022), False),
        ((0.02,), False),  # one split tells nothing of the spread
        ((0.0, 0.0, 0.0, 0.0, 0.0), False),
    ],
)
def test_clearly_above_is_beyond_what_splits_do_by_chance(differences, expected):
    found = compared([0.5 + each for each in differences], [0.5] * len(differences))
    assert clearly_above(found) is expected


@pytest.mark.parametrize(
    ("differences", "expected"),
    [((-0.02, -0.021), True), ((-0.02, 0.01), False), ((-0.02,), True), ((0.02,), False)],
)
def test_below_takes_the_whole_interval(differences, expected):
    found = compared([0.5 + each for each in differences], [0.5] * len(differences))
    assert below(found) is expected


def test_a_claim_holds_by_its_parts():
    assert verdict([True, True]) == "holds"
    assert verdict([True, False]) == "holds partly"
    assert verdict([False, False]) == "does not hold"
