"""The committed runs of benchmarks/accuracy: what they show follows from their records."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path

import pytest

from shiftcal.report.figures.base import read_figure
from shiftcal.report.tables.csv import to_csv
from shiftcal.studies.plan.reading import read_plan
from shiftcal.studies.planned import study_of
from shiftcal.studies.record import read_records
from shiftcal.studies.results import Results, mean_over_splits, select

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "benchmarks" / "accuracy" / "results" / "studies"
ALL_NAMES = sorted(folder.name for folder in RUNS.iterdir())
# Those of domain adaptation are checked in studies/adapting.
DOMAINS = ("digits", "office-caltech", "pacs")
NAMES = [name for name in ALL_NAMES if name not in DOMAINS]
# What these show is made of the stored scores as well, which are not committed.
NEED_SCORES = ("corruption-choice", "why-it-works")


def plan_of(name):
    return read_plan((RUNS / name / "plan.toml").read_text("utf-8"), data="data")


def records_of(name, tmp_path):
    packed = RUNS / name / "records.csv.gz"
    if not packed.exists():
        return read_records(RUNS / name / "records.csv")
    file = tmp_path / "records.csv"
    file.write_bytes(gzip.decompress(packed.read_bytes()))
    return read_records(file)


def test_the_runs_of_all_studies_are_there():
    assert {plan_of(name).study for name in NAMES} == {
        "synthetic",
        "natural",
        "corruption-choice",
        "distances",
        "peek",
        "ablation",
        "why-it-works",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_run_has_what_its_plan_asks_for(name, tmp_path):
    plan = plan_of(name)
    records = records_of(name, tmp_path)
    assert {record.split for record in records} == set(plan.seeds) == {0, 1, 2, 3, 4}
    variants = study_of(plan).variants(plan)
    expected = sum(len(v.targets) * v.draws for v in variants) * len(plan.seeds)
    assert len(records) == expected


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEED_SCORES])
def test_tables_and_figures_follow_from_the_committed_records(name, tmp_path):
    plan = plan_of(name)
    results = Results(plan, tuple(records_of(name, tmp_path)), archive=None)
    findings = study_of(plan).findings(results)
    for table, made in findings.tables.items():
        kept = (RUNS / name / "tables" / f"{table}.csv").read_text("utf-8")
        assert _rows(to_csv(made)) == _rows(kept), f"{name}/{table}: run benchmarks/accuracy again"
    for figure, made in findings.figures.items():
        assert made == read_figure(RUNS / name / "figures" / f"{figure}.json")
    assert list(findings.remarks) == json.loads((RUNS / name / "run.json").read_text())["remarks"]


def _rows(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("name", NEED_SCORES)
def test_figures_of_the_others_can_be_drawn_again(name):
    for file in sorted((RUNS / name / "figures").glob("*.json")):
        drawn = read_figure(file).draw()
        assert drawn.axes


def test_the_order_of_the_paper_comes_out(tmp_path):
    records = records_of("synthetic", tmp_path)
    assert {r.corruption for r in records if r.severity} >= {"fog", "gaussian_noise", "zoom_blur"}
    assert len({r.corruption for r in records if r.severity}) == 12
    mean = {
        key: mean_over_splits(select(records, variant=key, severity=(3, 4, 5))).value
        for key in ("vanilla", "ts", "sts", "sac")
    }
    assert mean["sac"] <= mean["sts"] < mean["ts"] < mean["vanilla"]


def test_on_the_clean_set_sac_is_ts(tmp_path):
    records = records_of("synthetic", tmp_path)
    clean = {key: select(records, variant=key, target="clean") for key in ("sac", "ts")}
    assert len(clean["sac"]) == 5
    for ours, theirs in zip(clean["sac"], clean["ts"], strict=True):
        assert (ours.split, ours.ece, ours.temperature) == (
            theirs.split,
            theirs.ece,
            theirs.temperature,
        )


def test_nothing_in_them_names_a_folder_of_some_machine():
    absolute = re.compile(r"""["\s:=,(]/\w+/""")
    for file in RUNS.rglob("*"):
        if file.is_file() and file.suffix != ".gz":
            # Nodes of an ONNX graph have names that begin with a slash, too.
            text = file.read_text("utf-8").replace("features_from=/", "features_from=")
            assert not absolute.search(text), file


def test_every_figure_of_the_page_is_drawn_from_its_run():
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    drawn = {file.stem for file in (ROOT / "docs" / "figures" / "results").glob("*.svg")}
    named = {
        f"{name}-{figure.stem}"
        for name in ALL_NAMES
        for figure in (RUNS / name / "figures").glob("*.json")
        if f"figures/results/{name}-{figure.stem}.svg" in page
    }
    assert drawn == named
    assert len(drawn) >= 12
