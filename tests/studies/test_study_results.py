"""Means over splits, and records that are looked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from study_records import record, results

from shiftcal.studies.records import mean_over_splits, select


def splits_of(values):
    return [record(split=s, ece=v) for s, own in enumerate(values) for v in own]


def test_the_interval_is_students_over_the_means_of_the_splits():
    rng = np.random.default_rng(4)
    values = rng.uniform(0.04, 0.06, (5, 12))
    found = mean_over_splits(splits_of(values))
    means = values.mean(axis=1)
    low, high = stats.t.interval(0.95, 4, means.mean(), stats.sem(means))
    assert found.value == pytest.approx(means.mean(), rel=1e-14)
    assert found.splits == pytest.approx(means.tolist(), rel=1e-14)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_splits_count_alike_however_many_records_they_have():
    found = mean_over_splits(splits_of([[0.1], [0.2, 0.4, 0.6]]))
    assert found.value == pytest.approx(0.25)
    assert found.splits == pytest.approx((0.1, 0.4))


def test_one_split_has_no_interval():
    found = mean_over_splits(splits_of([[0.1, 0.3]]))
    assert (found.value, found.low, found.high) == (pytest.approx(0.2), None, None)


def test_an_error_is_never_below_zero():
    found = mean_over_splits(splits_of([[0.0], [0.02]]))
    assert found.low == 0.0
    assert found.high > 0.1


def test_numbers_that_can_be_negative_have_their_whole_interval():
    records = [record(split=s, temperature=t) for s, t in enumerate((0.5, 0.6, 0.9))]
    found = mean_over_splits(records, lambda each: math.log(each.temperature), least=None)
    logs = np.log([0.5, 0.6, 0.9])
    low, high = stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_temperatures_below_one_have_an_interval_around_them():
    from shiftcal.studies.tables import temperature_table

    records = [record(variant="ts", split=s, temperature=t) for s, t in enumerate((0.5, 0.6))]
    cell = temperature_table(records, {"ts": "TS"}, [1]).rows[0].cells[0]
    assert cell.low < cell.value < cell.high
    assert cell.value == pytest.approx(math.sqrt(0.3))
    assert cell.low == pytest.approx(0.3 / cell.high)


def test_records_are_selected_by_any_of_several_values():
    records = [record(severity=s, variant=v) for s in (0, 1, 2) for v in ("ts", "sac")]
    assert select(records, severity=2, variant="ts") == [records[4]]
    assert select(records, severity=(0, 2)) == records[:2] + records[4:]
    assert select(records, severity=range(1, 3)) == records[2:]
    assert select(records, severity=[], variant={"ts"}) == []
    assert select(records) == records


def test_results_name_what_there_is_in_the_order_of_the_plan():
    records = [
        record(variant="ts", severity=5, corruption="snow"),
        record(variant="sac", severity=0),
        record(variant="sac", severity=1, corruption="fog"),
        record(variant="sac", severity=None, corruption="sketch"),
    ]
    from shiftcal.studies.plan import ShiftPlan

    found = results(records, shifts=ShiftPlan(("fog", "frost", "snow")))
    assert found.variants == ("ts", "sac")
    assert found.label("ts") == "TS"
    assert found.severities == (0, 1, 5)
    assert found.corruptions == ("fog", "snow")
    assert found.select(variant="ts") == records[:1]
