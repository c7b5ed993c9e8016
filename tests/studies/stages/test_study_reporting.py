"""The files of a report: all of this one, none of an earlier one, and nothing of anybody else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sample_figures import lines
from study_records import results

from shiftcal.report.tables.table import Cell, Column, Row, Table
from shiftcal.studies.archive import Archive
from shiftcal.studies.catalog.base import Findings
from shiftcal.studies.showing import ONE_SPLIT, OVER_SPLITS, RANGES
from shiftcal.studies.stages import reporting
from shiftcal.studies.stages.reporting import report
from shiftcal.studies.stages.written import LIST

TABLE = Table("T", (Column("a"),), (Row("x", (Cell(1.0),)),))


class Toy:
    """A study that finds what it is told to."""

    title = "A toy"

    def __init__(self, *tables, figures=(), data=()):
        self.found = Findings(
            tables=dict.fromkeys(tables, TABLE),
            figures={name: lines() for name in figures},
            data=dict.fromkeys(data, "a\n1\n"),
        )

    def findings(self, _):
        return self.found


def reported(folder, study):
    made = replace(results([]), archive=Archive(folder, {}))
    return report(study, made)


def there(folder):
    """Files below the folder but the list and the page."""
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    return files - {LIST, "report.md"}


def files_of(*tables):
    return {f"tables/{name}.{ending}" for name in tables for ending in ("md", "csv", "tex")}


def listed(folder):
    return json.loads((folder / LIST).read_text("utf-8"))["files"]


def test_what_is_written_is_what_is_listed(tmp_path):
    reported(tmp_path, Toy("one", "two", figures=("f",), data=("d.csv",)))
    pictures = {f"figures/f.{ending}" for ending in ("png", "svg", "json")}
    assert there(tmp_path) == files_of("one", "two") | pictures | {"data/d.csv"}
    assert sorted(listed(tmp_path)) == sorted(there(tmp_path))
    assert "[`data/`](data)" in (tmp_path / "report.md").read_text("utf-8")


def test_what_an_earlier_report_wrote_and_this_one_does_not_is_gone(tmp_path):
    reported(tmp_path, Toy("one", "two", data=("d.csv", "e.csv")))
    reported(tmp_path, Toy("two", "three", data=("e.csv",)))
    assert there(tmp_path) == files_of("two", "three") | {"data/e.csv"}
    reported(tmp_path, Toy("two"))
    assert there(tmp_path) == files_of("two")
    assert "data/" not in (tmp_path / "report.md").read_text("utf-8")


def test_files_of_somebody_else_stay(tmp_path):
    reported(tmp_path, Toy("one"))
    mine = {"tables/mine.csv", "figures/one.pdf", "data/notes.csv", "tables/deep/one.csv"}
    for name in mine:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    reported(tmp_path, Toy("two"))
    assert there(tmp_path) == files_of("two") | mine


def test_a_list_that_names_other_places_takes_nothing_from_there(tmp_path):
    folder = tmp_path / "run"
    reported(folder_made(folder), Toy("one"))
    others = ("plan.toml", "../thesis.tex", "tables/deep/x.csv", "scores/a", "tables/../plan.toml")
    for name in others:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("kept")
    names = [*others, str(tmp_path / "thesis.tex"), "tables", "tables/..", 7, None]
    (folder / LIST).write_text(json.dumps({"files": [*names, *files_of("one")]}))
    reported(folder, Toy("two"))
    assert all((folder / name).read_text() == "kept" for name in others)
    assert not files_of("one") & there(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', "[" * 100_000, "\xff"])
def test_a_damaged_list_is_none(tmp_path, text):
    reported(tmp_path, Toy("one"))
    (tmp_path / LIST).write_text(text, "latin-1")
    reported(tmp_path, Toy("two"))
    assert there(tmp_path) == files_of("one", "two")
    assert set(listed(tmp_path)) == files_of("two")


def test_files_of_a_report_that_was_interrupted_are_known(tmp_path, monkeypatch):
    reported(tmp_path, Toy("one"))

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(reporting, "write_page", stopped)
        with pytest.raises(KeyboardInterrupt):
            reported(tmp_path, Toy("two"))
    assert there(tmp_path) == files_of("one", "two")
    reported(tmp_path, Toy("three"))
    assert there(tmp_path) == files_of("three")


def test_the_page_says_where_its_numbers_come_from(tmp_path):
    reported(tmp_path, Toy("one"))
    text = (tmp_path / "report.md").read_text("utf-8")
    for words in ("records.csv", "geometric means of temperatures", "shares of choices", "scores/"):
        assert words in text
    assert "Every number is a mean" not in text


def folder_made(folder):
    folder.mkdir(parents=True)
    return folder


class Found:
    """A study with these findings."""

    title = "A toy"

    def __init__(self, **found):
        self.found = Findings(**{"tables": {}, "figures": {}, **found})

    def findings(self, _):
        return self.found


def test_a_table_and_a_figure_of_one_title_have_one_heading(tmp_path):
    table = replace(TABLE, title="Both")
    figures = {"a": replace(lines(), title="Both"), "b": replace(lines(), title="Alone")}
    reported(tmp_path, Found(tables={"t": table, "u": TABLE}, figures=figures))
    text = (tmp_path / "report.md").read_text("utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[:3] == ["## Both", "## Alone", "## T"]
    assert text.index("figures/a.png") < text.index("1.00") < text.index("## Alone")


def test_remarks_are_shown_as_they_are(tmp_path):
    reported(tmp_path, Found(remarks=("*TS*\n# <b>", "- next")))
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "\n- \\*TS\\* # &lt;b>\n- \\- next\n" in text


def test_notes_of_one_split_speak_of_no_intervals(tmp_path):
    table = replace(TABLE, note=f"First. {OVER_SPLITS} {RANGES} Last.")
    study = Found(tables={"t": table}, figures={"f": replace(lines(), note=OVER_SPLITS)})
    one = replace(results([]), archive=Archive(tmp_path, {}))
    shown = report(study, replace(one, plan=replace(one.plan, seeds=(3,))))
    assert shown.tables["t"].note == f"First. {ONE_SPLIT} Last."
    assert shown.figures["f"].note == ONE_SPLIT
    assert ONE_SPLIT in (tmp_path / "report.md").read_text("utf-8")
    assert report(study, replace(one, plan=replace(one.plan, seeds=(3, 4)))).tables["t"] == table
