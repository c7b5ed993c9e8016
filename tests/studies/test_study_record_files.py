"""Records as a table on disk."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_records import record

from shiftcal.errors import FileError
from shiftcal.studies.records import read_records, record_of, records_to_csv, write_records

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.floats(allow_nan=False)
RECORDS = st.builds(
    record,
    panel=TEXT,
    setting=TEXT,
    label=TEXT,
    chosen=TEXT,
    flags=TEXT,
    split=st.integers(0, 2**64),
    severity=st.none() | st.integers(0, 9),
    ece=NUMBER,
    nll=NUMBER,
    temperature=st.none() | NUMBER,
)


@given(st.lists(RECORDS, max_size=4))
def test_records_are_the_same_after_writing_and_reading(tmp_path_factory, records):
    file = tmp_path_factory.mktemp("records") / "records.csv"
    write_records(records, file)
    assert read_records(file) == records


def test_numbers_that_are_none_stay_so(tmp_path):
    write_records([record(nll=math.nan, ece=math.inf)], tmp_path / "r.csv")
    (found,) = read_records(tmp_path / "r.csv")
    assert math.isnan(found.nll)
    assert found.ece == math.inf


def test_a_record_is_the_same_after_json():
    one = record(severity=None, temperature=None)
    assert record_of(one.to_dict()) == one
    with pytest.raises(TypeError):
        record_of({**one.to_dict(), "more": 1})


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:-150], "damaged"),
        (lambda text: text.replace("ece,", "ace,", 1), "its columns are"),
        (lambda text: text.replace("0.05", "five", 1), "damaged.*five"),
        (lambda text: text.replace("5000", "5000.5", 1), "damaged"),
        (lambda text: text.replace(",0.05", ',"0.05', 1), "damaged"),
        (lambda text: text.rstrip("\n") + ",more\n", "its columns are"),
    ],
)
def test_damaged_tables_are_named(tmp_path, damage, words):
    file = tmp_path / "records.csv"
    file.write_text(damage(records_to_csv([record(), record()])), "utf-8")
    with pytest.raises(FileError, match=rf"records\.csv is {words}|{words}"):
        read_records(file)


def test_a_table_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        read_records(tmp_path / "none.csv")
    (tmp_path / "r.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="damaged"):
        read_records(tmp_path / "r.csv")
