"""The page about studies: what it shows is what the program prints, and it names all there is."""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from shiftcal import studies
from shiftcal.studies.plan import (
    AdaptationPlan,
    CalibrationPlan,
    DataPlan,
    DomainPlan,
    LadderPlan,
    ModelPlan,
    NaturalSet,
    NetworkPlan,
    Plan,
    ShiftPlan,
    SurrogatePlan,
    TrainingPlan,
)
from shiftcal.studies.records import Record

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reproduce.md").read_text("utf-8")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def in_form(text):
    """The words of a line: digits differ between machines, blanks with the width of cells."""
    return re.sub(r"[\d.,]+", "#", " ".join(text.split()))


@pytest.mark.slow
def test_the_outputs_of_the_page_are_real(tmp_path, monkeypatch, shiftcal):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    blocks = _FENCE.findall(PAGE)
    making = [block for language, block in blocks if language == "python"][:2]
    exec("\n".join(making), {"__name__": "__docs__"})
    commands = [block for language, block in blocks if language == "console"]
    assert len(commands) == 2
    for block in commands:
        command, *shown = block.splitlines()
        done = shiftcal(*shlex.split(command)[2:])
        assert done.status == 0, done.err
        printed = [in_form(line) for line in (done.out + done.err).splitlines()]
        for line in shown:
            assert line == "..." or in_form(line) in printed, (command, line)


def test_every_plan_has_a_row_and_what_it_fetches_is_named():
    for name in studies.names():
        assert f"| `{name}` |" in PAGE
        told = tomllib.loads(studies.plan_text(name)[0])
        sets = told.get("shifts", {}).get("sets", []) + told.get("domains", [])
        own = [told["data"]["fetch"]] if "data" in told else []
        for fetch in (*own, *(each.get("fetch", "") for each in sets)):
            for command in re.findall(r"shiftcal data get [\w-]+ --to \{data\}/[\w-]+", fetch):
                assert f"`{command}`" in PAGE
            for address in re.findall(r"https://[^\s,;:)]+", fetch):
                assert address in PAGE


def test_every_entry_of_a_plan_is_explained():
    table = PAGE.partition("## The plan, line by line")[2].partition("\n## ")[0]
    parts = (Plan, ModelPlan, DataPlan, CalibrationPlan, ShiftPlan, NaturalSet, LadderPlan)
    sections = {"model", "data", "calibration", "shifts", "ladders", "options", "sets"}
    for part in parts:
        for field in fields(part):
            if field.name not in sections and field.compare:  # not where it was read from
                assert re.search(rf"`(\[\w+\] )?{field.name}`", table), field.name
    for section in sections - {"sets"}:
        assert f"[{section}" in table


def test_every_entry_of_a_plan_of_domain_adaptation_is_explained():
    section = PAGE.partition("## Domain adaptation")[2].partition("\n## ")[0]
    tables = {"network", "training", "calibration", "domains"}
    for part in (AdaptationPlan, NetworkPlan, TrainingPlan, SurrogatePlan, DomainPlan):
        for field in fields(part):
            if field.name not in {*tables, "settings"} and field.compare:
                assert re.search(rf"`(\[\w+\] )?{field.name}`", section), field.name
    for table in (*tables, "training.settings"):
        assert f"[{table}" in section


def test_every_column_of_the_records_is_explained():
    text = (DOCS / "file-formats.md").read_text("utf-8")
    section = text.partition("## Run folders")[2].partition("\n## ")[0]
    for field in fields(Record):
        assert f"`{field.name}`" in section, field.name


@pytest.mark.parametrize("words", ["--list", "peek --show-plan"])
def test_the_keys_of_lists_and_plans_are_in_the_docs(shiftcal_json, words):
    check_keys(shiftcal_json(f"reproduce {words}"))


def check_keys(told):
    text = (DOCS / "command-line.md").read_text("utf-8")
    section = text.partition("## `shiftcal reproduce`")[2].partition("\n## ")[0]
    common = text.partition("## JSON")[2]
    for key in told:
        assert f"`{key}`" in section or f"`{key}`" in common, key


def test_every_file_of_a_run_is_on_the_page():
    section = PAGE.partition("## The folder of a run")[2].partition("\n## ")[0]
    for name in ("plan.toml", "records.csv", "run.json", "report.md", "tables/", "figures/"):
        assert f"| `{name}` |" in section
