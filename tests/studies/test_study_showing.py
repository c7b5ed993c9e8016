"""The table, the lines and the boxes that studies share: their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from study_records import record

from shiftcal.report.tables import to_markdown
from shiftcal.studies.records import Mean
from shiftcal.studies.tables import (
    OVER_SPLITS,
    full_table,
    in_words,
    percent,
    severities_in_words,
    severity_boxes,
    severity_lines,
    severity_table,
    target_cell,
)

VARIANTS = {"ts": "TS", "sac": "SAC", "oracle": "Oracle"}
CORRUPTIONS = ("fog", "snow", "frost")
SEVERITIES = (0, 1, 3)


def drawn(splits=(0, 1, 2), variants=VARIANTS):
    """A record of everything, and the same numbers as an array by variant, severity, split."""
    rng = np.random.default_rng(6)
    values = rng.uniform(0.1, 0.2, (len(variants), len(SEVERITIES), len(splits), 3))
    made = []
    for v, key in enumerate(variants):
        for s, severity in enumerate(SEVERITIES):
            for i, split in enumerate(splits):
                for c, corruption in enumerate(CORRUPTIONS if severity else ("none",)):
                    told = {"variant": key, "severity": severity, "corruption": corruption}
                    made.append(record(**told, split=split, ece=values[v, s, i, c]))
    values[:, 0] = values[:, 0, :, :1]  # the clean set is one
    return made, values


def students(means):
    return stats.t.interval(0.95, len(means) - 1, means.mean(), stats.sem(means))


def test_the_table_has_means_over_corruptions_with_intervals_over_splits():
    records, values = drawn()
    table = severity_table(records, VARIANTS, SEVERITIES, title="A", corner="Which")
    assert [column.name for column in table.columns] == [
        *("severity 0", "severity 1", "severity 3"),
        "mean of 1 and 3",
    ]
    assert [row.label for row in table.rows] == ["TS", "SAC", "Oracle"]
    for v, row in enumerate(table.rows):
        groups = [values[v, s].mean(axis=1) for s in range(3)]
        groups.append(values[v, 1:].mean(axis=(0, 2)))
        for cell, means in zip(row.cells, groups, strict=True):
            low, high = students(100 * means)
            assert cell.value == pytest.approx(100 * means.mean(), rel=1e-12)
            assert (cell.low, cell.high) == pytest.approx((low, high), rel=1e-9)


def test_the_oracle_is_never_the_best():
    records, _ = drawn()
    table = severity_table(records, VARIANTS, SEVERITIES, title="A")
    assert [row.ranked for row in table.rows] == [True, True, False]


def test_the_lines_are_the_table():
    records, _ = drawn()
    table = severity_table(records, VARIANTS, SEVERITIES, title="A")
    (panel,) = severity_lines(records, VARIANTS, SEVERITIES, title="A").panels
    assert panel.x == (0.0, 1.0, 3.0)
    for series, row in zip(panel.series, table.rows, strict=True):
        assert series.label == row.label
        assert series.y == tuple(cell.value for cell in row.cells[:3])
        assert series.low == tuple(cell.low for cell in row.cells[:3])
        assert series.high == tuple(cell.high for cell in row.cells[:3])


def test_a_box_holds_a_value_for_each_corruption():
    records, values = drawn()
    boxes = severity_boxes(records, VARIANTS, SEVERITIES, title="A")
    assert boxes.groups == ("0", "1", "3")
    for v, series in enumerate(boxes.series):
        for s, found in enumerate(series.values):
            means = 100 * values[v, s].mean(axis=0)
            assert found == pytest.approx(means if s else means[:1], rel=1e-12)


def test_one_split_has_no_intervals():
    records, _ = drawn(splits=(4,))
    table = severity_table(records, VARIANTS, SEVERITIES, title="A")
    assert all(cell.low is None for row in table.rows for cell in row.cells)
    (panel,) = severity_lines(records, VARIANTS, SEVERITIES, title="A").panels
    assert all(not series.low for series in panel.series)


def test_what_is_missing_is_left_empty():
    records, _ = drawn()
    kept = [r for r in records if not (r.variant == "ts" and r.severity == 1)]
    table = severity_table(kept, VARIANTS, SEVERITIES, title="A")
    assert table.rows[0].cells[1].value is None
    assert table.rows[0].cells[0].value is not None
    (panel,) = severity_lines(kept, VARIANTS, SEVERITIES, title="A").panels
    assert panel.series[0].y[1] is None
    assert [end is None for end in panel.series[0].low] == [False, True, False]
    assert [end is None for end in panel.series[0].high] == [False, True, False]
    assert severity_boxes(kept, VARIANTS, SEVERITIES, title="A").series[0].values[1] == ()


def test_one_severity_has_no_mean_of_several():
    records, _ = drawn()
    columns = severity_table(records, VARIANTS, (0, 1), title="A").columns
    assert [column.name for column in columns] == ["severity 0", "severity 1"]


def test_a_mean_over_severities_is_of_variants_that_have_them_all():
    records, _ = drawn()
    kept = [r for r in records if not (r.variant == "ts" and r.severity == 1)]
    ts, sac, _ = severity_table(kept, VARIANTS, SEVERITIES, title="A").rows
    assert ts.cells[-1].value is None
    assert sac.cells[-1].value is not None
    assert sac.cells[-1].mark


@pytest.mark.parametrize(
    ("severities", "words"),
    [
        ((4,), "4"),
        ((1, 2, 3, 4, 5), "1 to 5"),
        ((3, 4), "3 to 4"),
        ((3, 5), "3 and 5"),
        ((1, 3, 4), "1, 3 and 4"),
    ],
)
def test_severities_are_named_without_those_that_are_missing(severities, words):
    assert in_words(severities) == words
    noun = "severity" if len(severities) == 1 else "severities"
    assert severities_in_words(severities) == f"{noun} {words}"


def test_no_interval_of_a_percentage_ends_above_100():
    cell = percent(Mean(0.98, 0.95, 1.01, (0.97, 0.99)))
    assert (cell.value, cell.low, cell.high) == pytest.approx((98, 95, 100))


def test_the_note_says_that_splits_share_images():
    assert "splits share images" in OVER_SPLITS
    records, _ = drawn()
    assert OVER_SPLITS in severity_table(records, VARIANTS, SEVERITIES, title="A").note


def flipping(eces, sets):
    pairs = zip(eces, sets, strict=True)
    return [record(split=s, ece=ece, chosen=name) for s, (ece, name) in enumerate(pairs)]


def test_a_choice_that_flips_between_splits_is_shown_with_its_range():
    records = flipping((0.0715, 0.0655, 0.0699, 0.1941, 0.1871), "44455")
    cell = target_cell(records)
    assert (cell.value, cell.low, cell.high) == pytest.approx((11.762, 6.55, 19.41))
    assert (cell.by_ends, cell.source) == (True, "least and most of the splits")
    same = target_cell(flipping((0.0715, 0.0655, 0.0699, 0.0706, 0.068), "44444"))
    assert not same.by_ends
    assert (same.low + same.high) / 2 == pytest.approx(same.value)


def test_an_interval_that_would_reach_below_0_is_a_range():
    cell = target_cell(flipping((0.01, 0.01, 0.12), "444"))
    assert (cell.low, cell.high, cell.by_ends) == (1.0, 12.0, True)


def test_the_range_of_two_splits_is_not_taken_for_an_interval():
    from shiftcal.report.tables import Column, Row, Table

    cell = target_cell(flipping((0.04, 0.08), "45"))
    table = Table("", (Column("ECE"),), (Row("SAC", (cell,)),))
    assert "6.00 [4.00, 8.00]" in to_markdown(table)


def test_one_split_has_neither_interval_nor_range():
    assert target_cell(flipping((0.04,), "4")).low is None
    assert target_cell([]).value is None


def test_one_method_is_the_lowest_of_nothing():
    records, _ = drawn()
    alone = {key: VARIANTS[key] for key in ("ts", "oracle")}
    table = severity_table(records, alone, SEVERITIES, title="A")
    full = full_table([r for r in records if r.variant in alone], alone)
    assert not any(cell.mark for each in (table, full) for row in each.rows for cell in row.cells)
    assert "Marked" not in full.note
    several = full_table(records, VARIANTS)
    assert any(cell.mark for row in several.rows for cell in row.cells)
    assert "Marked" in several.note
