"""The committed studies of domain adaptation: what they show follows from their records."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from shiftcal.report.figures.base import read_figure
from shiftcal.report.tables.csv import to_csv
from shiftcal.studies.adapting.findings import findings_of
from shiftcal.studies.adapting.results import AdaptationResults
from shiftcal.studies.adapting.trainings_table import trainings_from_csv
from shiftcal.studies.plan.reading import read_plan
from shiftcal.studies.record import read_records
from shiftcal.studies.results import mean_over_splits, select

RUNS = Path(__file__).resolve().parents[3] / "benchmarks" / "accuracy" / "results" / "studies"
# How many tasks and seeds each has.
SIZES = {"digits": (2, 3), "office-caltech": (12, 5), "pacs": (12, 5)}
NAMES = tuple(SIZES)
ADAPTING = ("dan", "jan", "cdan", "mdd", "safn", "mcc")


def text_of(name, file):
    packed = RUNS / name / f"{file}.gz"
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode()
    return (RUNS / name / file).read_text("utf-8")


@pytest.fixture(scope="module")
def results_of(tmp_path_factory):
    def read(name):
        plan = read_plan((RUNS / name / "plan.toml").read_text("utf-8"), data="data")
        file = tmp_path_factory.mktemp(name) / "records.csv"
        file.write_text(text_of(name, "records.csv"), "utf-8", newline="")
        facts, failures = trainings_from_csv(text_of(name, "data/trainings.csv"))
        return AdaptationResults(plan, tuple(read_records(file)), tuple(facts), tuple(failures))

    return read


@pytest.mark.parametrize("name", NAMES)
def test_every_task_trainer_and_seed_is_there(name, results_of):
    results = results_of(name)
    plan = results.plan
    assert {trainer.name for trainer in plan.trainers} == {"source-only", *ADAPTING}
    wanted = len(plan.tasks) * len(plan.trainers) * len(plan.seeds)
    assert len(results.facts) + len(results.failures) == wanted
    assert len(results.records) == len(results.facts) * len(plan.methods)
    tasks, seeds = SIZES[name]
    assert len(plan.tasks) == tasks
    assert plan.seeds == tuple(range(seeds))


@pytest.mark.parametrize("name", NAMES)
def test_tables_figures_and_remarks_follow_from_the_records(name, results_of):
    findings = findings_of(results_of(name))
    for table, made in findings.tables.items():
        kept = (RUNS / name / "tables" / f"{table}.csv").read_text("utf-8")
        assert _rows(to_csv(made)) == _rows(kept), f"{name}/{table}: run benchmarks/accuracy again"
    for figure, made in findings.figures.items():
        assert made == read_figure(RUNS / name / "figures" / f"{figure}.json")
    assert list(findings.remarks) == json.loads(text_of(name, "run.json"))["remarks"]


def _rows(text):
    return list(csv.reader(io.StringIO(text)))


def trainers_above_the_source_alone(records):
    accuracy = {
        trainer: mean_over_splits(select(records, panel=trainer), lambda r: r.accuracy).value
        for trainer in ("source-only", *ADAPTING)
    }
    return [name for name in ADAPTING if accuracy[name] > accuracy["source-only"]]


def test_at_least_five_of_six_trainers_beat_the_source_alone_on_pacs(results_of):
    records = select(results_of("pacs").records, variant="vanilla")
    assert len(trainers_above_the_source_alone(records)) >= 5


def test_at_least_five_of_six_trainers_beat_the_source_alone_on_coloured_digits(results_of):
    records = select(results_of("digits").records, variant="vanilla")
    coloured = [record for record in records if record.target.endswith("mnist-m")]
    assert len(coloured) == 7 * 3
    assert len(trainers_above_the_source_alone(coloured)) >= 5


def test_the_controls_of_pacs_follow_from_their_rows_and_from_the_study(results_of):
    found = json.loads((RUNS.parent / "controls.json").read_text("utf-8"))
    rows, summary = found["rows"], found["summary"]
    facts = results_of("pacs").facts
    full = {(fact.task, fact.trainer, fact.seed): fact.target_accuracy for fact in facts}
    tasks, trainers = {row["task"] for row in rows}, {"source-only", *ADAPTING}
    assert len(tasks) == 12
    assert len(rows) == len(tasks) * len(trainers) * len(found["seeds"])
    for row in rows:
        assert row["full"] == full[row["task"], row["trainer"], row["seed"]]
        if row["trainer"] == "source-only":  # the same splits, features and first weights
            assert row["control"] == pytest.approx(row["full"], abs=0.01)
    for name in ADAPTING:
        gains = [row["full"] - row["control"] for row in rows if row["trainer"] == name]
        assert summary[name]["loss_adds"] == pytest.approx(sum(gains) / len(gains))
        assert summary[name]["tasks_better"] == sum(gain > 0 for gain in gains)
        assert summary[name]["loss_adds"] > 0
