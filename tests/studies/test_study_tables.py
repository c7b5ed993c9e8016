"""Records on disk, means over splits, and the tables and figures that studies share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from study_records import record

from shiftcal.errors import FileError
from shiftcal.report.tables import to_markdown
from shiftcal.studies import records as show
from shiftcal.studies.records import Record, mean_of, mean_over_splits, read_records, to_csv

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
NUMBER = st.floats(allow_nan=False)
RECORDS = st.builds(
    record,
    label=TEXT,
    chosen=TEXT,
    split=st.integers(0, 2**64),
    severity=st.none() | st.integers(0, 9),
    ece=NUMBER,
    temperature=st.none() | NUMBER,
)


@given(st.lists(RECORDS, max_size=4))
def test_records_are_the_same_after_writing_and_reading(tmp_path_factory, records):
    file = tmp_path_factory.mktemp("records") / "records.csv"
    file.write_bytes(to_csv(Record, records).encode())
    assert read_records(file) == records


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-150],
        lambda text: text.replace("ece,", "ace,", 1),
        lambda text: text.replace("0.05", "five", 1),
        lambda text: text.replace(",0.05", ',"0.05', 1),
        lambda text: text.rstrip("\n") + ",more\n",
        lambda _: "",
    ],
)
def test_damaged_records_are_named(tmp_path, damage):
    file = tmp_path / "records.csv"
    with pytest.raises(FileError, match="No such file"):
        read_records(file)
    file.write_text(damage(to_csv(Record, [record(), record()])), "utf-8")
    with pytest.raises(FileError, match=r"records\.csv is damaged"):
        read_records(file)


def test_the_interval_is_students_over_the_means_of_the_splits():
    values = np.random.default_rng(4).uniform(0.04, 0.06, (5, 12))
    found = mean_of([record(split=s, ece=v) for s, own in enumerate(values) for v in own])
    means = values.mean(axis=1)
    low, high = stats.t.interval(0.95, 4, means.mean(), stats.sem(means))
    assert found[:3] == pytest.approx((means.mean(), low, high), rel=1e-12)
    assert found.splits == pytest.approx(means.tolist(), rel=1e-14)


def test_splits_count_alike_and_no_end_is_beyond_what_is_possible():
    assert mean_over_splits([(0, 0.1), (1, 0.2), (1, 0.4), (1, 0.6)]).value == pytest.approx(0.25)
    assert mean_over_splits([(0, 0.1), (0, 0.3)])[1:3] == (None, None)
    assert mean_over_splits([]) is None
    assert mean_over_splits([(0, 0.0), (1, 0.02)], least=0.0).low == 0.0
    assert mean_over_splits([(0, 0.97), (1, 0.99)], most=1.0).high == 1.0


def test_temperatures_below_one_have_an_interval_around_them():
    cell = show.temperature_cell([record(split=s, temperature=t) for s, t in enumerate((0.5, 0.6))])
    assert cell.value == pytest.approx(math.sqrt(0.3))
    assert cell.low == pytest.approx(0.3 / cell.high)


def test_table_lines_and_boxes_have_the_means_over_corruptions():
    values = np.random.default_rng(6).uniform(0.1, 0.2, (3, 3, 3, 3))
    records = [
        record(variant=key, severity=severity, corruption=name, split=i, ece=values[v, s, i, c])
        for v, key in enumerate(("ts", "sac", "oracle"))
        for s, severity in enumerate((0, 1, 3))
        for i in range(3)
        for c, name in enumerate(("fog", "snow", "frost"))
    ]
    table = show.severity_table(records, "A")
    names = ["severity 0", "severity 1", "severity 3", "mean of 1, 3"]
    assert [column.name for column in table.columns] == names
    (panel,) = show.severity_lines(records, "A").panels
    boxes = show.severity_boxes(records, "A")
    assert panel.x == (0.0, 1.0, 3.0)
    for v, (row, line, box) in enumerate(zip(table.rows, panel.series, boxes.series, strict=True)):
        groups = [values[v, s].mean(axis=1) for s in range(3)]
        groups.append(values[v, 1:].mean(axis=(0, 2)))
        for cell, means in zip(row.cells, groups, strict=True):
            low, high = stats.t.interval(0.95, 2, means.mean(), stats.sem(means))
            expected = (100 * means.mean(), 100 * low, 100 * high)
            assert (cell.value, cell.low, cell.high) == pytest.approx(expected, rel=1e-9)
        assert line.y == tuple(cell.value for cell in row.cells[:3])
        assert line.low == tuple(cell.low for cell in row.cells[:3])
        assert box.values[1] == pytest.approx(100 * values[v, 1].mean(axis=0), rel=1e-12)
    assert not any(cell.mark for cell in table.rows[2].cells)  # the oracle has seen the labels


@pytest.mark.parametrize(
    ("eces", "sets", "shown"),
    [
        ((0.0715, 0.0655, 0.0699, 0.1941, 0.1871), "44455", "11.76 [6.55, 19.41]"),
        ((0.0715, 0.0655, 0.0699, 0.0706, 0.0680), "44444", "6.91 ± 0.30"),
        ((0.01, 0.01, 0.12), "444", "4.67 [1.00, 12.00]"),
        ((0.04,), "4", "4.00"),
    ],
)
def test_a_choice_that_flips_or_reaches_below_0_is_shown_with_its_range(eces, sets, shown):
    pairs = enumerate(zip(eces, sets, strict=True))
    cell = show.target_cell([record(split=s, ece=e, chosen=name) for s, (e, name) in pairs])
    table = show.table("", {0: "SAC"}, show.percents({0: "ECE"}), lambda *_: cell)
    assert f" {shown} |" in to_markdown(table)


def test_choices_are_shares_of_a_severity():
    made = [record(severity=s, split=i, chosen="a" if i else "b") for s in (0, 1) for i in range(4)]
    table = show.chosen_table(made, ("b", "c"))
    assert [column.name for column in table.columns] == ["choices", "b", "c", "a"]
    assert [[cell.value for cell in row.cells] for row in table.rows] == [[4, 25, 0, 75]] * 2
