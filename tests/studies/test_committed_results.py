"""The committed runs of benchmarks/accuracy: tables and figures follow from their records."""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path

import pytest

from shiftcal.registry import STUDIES
from shiftcal.report.figures import read_figure
from shiftcal.report.tables import to_csv, to_markdown
from shiftcal.studies.domain_adaptation import AdaptationFacts, findings_of
from shiftcal.studies.plan import AdaptationPlan, read_plan
from shiftcal.studies.records import read_records

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "benchmarks" / "accuracy" / "results" / "studies"
NAMES = sorted(folder.name for folder in RUNS.iterdir())
# Made of the stored scores as well, which are not committed.
NEED_SCORES = ("why-it-works", "why-it-works-imagenet")


def text_of(name, file):
    packed = RUNS / name / f"{file}.gz"
    if packed.exists():
        return gzip.decompress(packed.read_bytes()).decode()
    return (RUNS / name / file).read_text("utf-8")


def findings(name, tmp_path):
    plan = read_plan(text_of(name, "plan.toml"), data="data")
    file = tmp_path / "records.csv"
    file.write_text(text_of(name, "records.csv"), "utf-8", newline="")
    records = tuple(read_records(file))
    if not isinstance(plan, AdaptationPlan):
        study = STUDIES.get(plan.study)(plan)
        each = sum(len(v.targets) * v.draws for v in study.variants())
        assert len(records) == len(plan.seeds) * each
        return study.findings(records, None)
    facts = []
    for row in csv.DictReader(io.StringIO(text_of(name, "data/trainings.csv"))):
        assert not row.pop("failed")
        kinds = {"task": str, "trainer": str, "seed": int, "n_calibration": int, "n_target": int}
        facts.append(
            AdaptationFacts(**{key: kinds.get(key, float)(value) for key, value in row.items()})
        )
    return findings_of(plan, records, facts)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEED_SCORES])
def test_tables_and_figures_follow_from_the_committed_records(name, tmp_path):
    found = findings(name, tmp_path)
    assert found.tables
    kept = {file.stem for file in (RUNS / name / "tables").glob("*.csv")}
    assert kept == set(found.tables)
    for table, made in found.tables.items():
        for kind, text in (("csv", to_csv(made)), ("md", to_markdown(made))):
            kept_text = (RUNS / name / "tables" / f"{table}.{kind}").read_text("utf-8")
            assert text.replace("\r\n", "\n") == kept_text, f"{table}.{kind}"
    for figure, made in found.figures.items():
        assert made == read_figure(RUNS / name / "figures" / f"{figure}.json")


def test_nothing_in_them_names_a_folder_of_some_machine():
    absolute = re.compile(r"""["\s:=,(]/\w+/""")
    for file in RUNS.rglob("*"):
        if file.is_file() and file.suffix != ".gz":
            # Nodes of an ONNX graph have names that begin with a slash, too.
            text = file.read_text("utf-8").replace("features_from=/", "features_from=")
            assert not absolute.search(text), file
