"""Tables and figures of domain adaptation, of records made by hand."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from statistics import fmean

import pytest
from adaptation_records import evaluated, everywhere, facts, plan, results
from study_records import LABELS

from shiftcal.errors import FileError
from shiftcal.report.tables.latex import to_latex
from shiftcal.report.tables.markdown import to_markdown
from shiftcal.studies.adapting.figures import accuracy_lines, trainer_lines
from shiftcal.studies.adapting.findings import findings_of
from shiftcal.studies.adapting.plan import (
    DomainPlan,
    NetworkPlan,
    SurrogatePlan,
    TrainerPlan,
    TrainingPlan,
)
from shiftcal.studies.adapting.results import Failure
from shiftcal.studies.adapting.sureness import sureness_table
from shiftcal.studies.adapting.tables import (
    accuracy_table,
    other_data_table,
    task_table,
    temperature_table,
    trainer_table,
)
from shiftcal.studies.adapting.trainings_table import trainings_from_csv, trainings_to_csv
from shiftcal.studies.adapting.unlike_paper import unlike_paper

CDAN = TrainerPlan("cdan", "CDAN")
METHOD = {name: i for i, name in enumerate(LABELS)}


def number(trainer, task, seed, method):
    """An ECE of its own for everything: 0.01 a method, 0.1 a trainer, 0.001 a task or a seed."""
    which = ("source-only", "dan", "cdan").index(trainer)
    return 0.1 * which + 0.01 * (1 + METHOD[method]) + 0.001 * (2 * task.endswith("product") + seed)


@pytest.fixture
def found():
    return results(everywhere(plan(), ece=number))


def row(table, label):
    return next(row for row in table.rows if row.label == label)


def test_the_task_table_has_the_layout_of_the_papers_table_3(found):
    table = task_table(found, CDAN)
    assert [column.name for column in table.columns] == ["A2C", "A2P", "Avg"]
    assert [each.label for each in table.rows] == list(LABELS.values())
    cells = row(table, "TS").cells
    assert cells[0].value == pytest.approx(100 * (0.2 + 0.02 + 0.0005))
    assert cells[1].value == pytest.approx(100 * (0.2 + 0.02 + 0.0025))
    assert cells[2].value == pytest.approx(fmean(cell.value for cell in cells[:2]))
    assert cells[0].low < cells[0].value < cells[0].high
    assert [cell.mark for cell in row(table, "Vanilla").cells] == [True] * 3
    assert not any(cell.mark for cell in row(table, "TS").cells)


def test_the_oracle_is_the_lowest_of_nothing(found):
    lowest = results(everywhere(plan(), ece=lambda *told: 0.3 - 0.01 * METHOD[told[-1]]))
    table = task_table(lowest, CDAN)
    assert not row(table, "Oracle").cells[0].mark
    assert row(table, "SAC").cells[0].mark


def test_a_seed_without_one_of_the_tasks_does_not_count_in_the_mean_over_them():
    records = [
        record
        for record in everywhere(plan(), ece=number)
        if (record.split, record.target) != (1, "art_to_product")
    ]
    cells = row(task_table(results(records), CDAN), "TS").cells
    assert cells[1].value == pytest.approx(100 * 0.222)
    assert cells[2].value == pytest.approx(100 * fmean([0.22, 0.222]))
    assert cells[2].low is None
    none = [record for record in records if record.target != "art_to_product" or record.split]
    assert [pair.title for pair in results(none).pairs] == ["A2C"]


def paper_plan(**changes):
    shorts = {"art": "A", "clipart": "C", "product": "P", "real": "R"}
    domains = tuple(DomainPlan(name, short, name, ((name,),)) for name, short in shorts.items())
    tasks = tuple((a, b) for a in shorts for b in shorts if a != b)
    return plan(paper="office-home", domains=domains, tasks=tasks, **changes)


def test_the_papers_rows_stand_below_if_the_images_are_the_papers():
    the_plan = paper_plan(seeds=(0,))
    records = everywhere(the_plan, ece=lambda *told: 0.2 + 0.01 * METHOD[told[-1]])
    found = results(records, paper="office-home", domains=the_plan.domains, tasks=the_plan.tasks)
    table = task_table(found, CDAN)
    assert len(table.columns) == 13
    theirs = [each for each in table.rows if each.label.endswith("(paper)")]
    assert [each.label for each in theirs][:2] == ["Vanilla (paper)", "TS (paper)"]
    assert theirs[0].rule_before
    sts = row(table, "STS (paper)").cells
    assert (sts[0].value, sts[-1].value) == (25.23, pytest.approx(12.47, abs=0.005))
    assert sts[0].source == "paper, Table 3"
    # As the paper prints bold: STS on six tasks, TransCal in the mean.
    assert sum(cell.mark for cell in sts) == 6
    assert row(table, "TransCal (paper)").cells[-1].mark
    # Ours are marked by themselves, whatever the paper has.
    assert all(cell.mark for cell in row(table, "Vanilla").cells)
    assert not [
        each for each in task_table(found, TrainerPlan("dan", "DAN")).rows if "paper" in each.label
    ]
    beside = trainer_table(found)
    assert [c.key for c in beside.columns][-1] == "paper, Office-Home CDAN Avg"
    assert row(beside, "SAC").cells[-1].value == pytest.approx(14.32, abs=0.005)
    assert row(beside, "Oracle").cells[-1].value is None
    assert "paper" not in findings_of(found).tables


PAPERS = {
    "network": NetworkPlan(("resnet50",)),
    "training": TrainingPlan(recipe="office-home"),
    "seeds": (0,),
}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"network": NetworkPlan(("torchvision:resnet50?weights=DEFAULT",))}, ""),
        ({"network": NetworkPlan(("timm:resnet-50.a1_in1k",))}, ""),
        ({"seeds": (0, 1)}, ""),
        ({"network": NetworkPlan(("wide_resnet50_2",))}, "the backbone wide_resnet50_2"),
        ({"network": NetworkPlan(("resnet101",))}, "the backbone resnet101"),
        ({"network": NetworkPlan(("resnet50",), frozen=True)}, "which is frozen"),
        ({"training": TrainingPlan(recipe="visda")}, "recipe visda"),
        (
            {"training": TrainingPlan(recipe="office-home", settings={"iterations": 3, "lr": 0.1})},
            "iterations = 3, lr = 0.1",
        ),
        (
            {"training": TrainingPlan(recipe="office-home", select="source-validation")},
            "select source-validation",
        ),
        ({"bins": 10}, "10 bins"),
        (
            {"calibration": SurrogatePlan("pixelate", (1, 2))},
            "surrogate sets of pixelate at severities 1, 2",
        ),
    ],
)
def test_what_is_not_as_in_the_paper_is_said_where_its_numbers_stand(changes, told):
    given = {**PAPERS, **changes}
    the_plan = paper_plan(**given)
    records = everywhere(the_plan, ece=lambda *told: 0.2 + 0.01 * METHOD[told[-1]])
    same = {"paper": "office-home", "domains": the_plan.domains, "tasks": the_plan.tasks}
    found = results(records, **same, **given)
    sentence = f"Ours differ from the paper's in: {told}." if told else ""
    assert unlike_paper(found.plan) == sentence
    for table in (task_table(found, CDAN), trainer_table(found)):
        assert table.note.endswith(sentence)
        assert ("Ours differ" in table.note) == bool(told)
    assert "Ours differ" not in task_table(found, TrainerPlan("dan", "DAN")).note


def test_fewer_images_than_the_papers_are_said():
    the_plan = paper_plan(**PAPERS)
    some = (replace(the_plan.domains[0], limit=1000), *the_plan.domains[1:])
    told = unlike_paper(replace(the_plan, domains=some))
    assert told == "Ours differ from the paper's in: at most 1,000 images of art."
    assert not unlike_paper(plan(bins=3))  # no paper beside


def test_the_papers_mean_is_not_set_beside_one_of_fewer_tasks(found):
    few = results(found.records, paper="office-home")
    assert row(task_table(few, CDAN), "STS (paper)").cells[-1].value is None


def test_the_trainer_table_has_the_layout_of_the_papers_table_4(found):
    table = trainer_table(found)
    names = [column.name for column in table.columns]
    assert names == ["source only", "DAN", "CDAN", "mean, adapted"]
    ts = [cell.value for cell in row(table, "TS").cells]
    assert ts == pytest.approx([2.15, 12.15, 22.15, 17.15])
    assert "Means over 2 tasks." in table.note
    for text in (to_markdown(table), to_latex(table)):
        assert "mean, adapted" in text


def test_other_data_are_called_so(found):
    table = other_data_table()
    assert "other data" in table.title
    groups = [column.group for column in table.columns]
    assert groups == ["paper, Office-Home", *["paper, VisDA-2017"] * 6]
    assert row(table, "STS").cells[1].value == 5.33
    assert row(table, "STS").cells[1].mark
    assert findings_of(found).tables["paper"] == table


def test_one_seed_has_no_intervals_and_the_note_says_so():
    found = results(everywhere(plan(seeds=(0,)), ece=number), seeds=(0,))
    for table in (trainer_table(found), task_table(found, CDAN), accuracy_table(found)):
        assert all(cell.low is None for each in table.rows for cell in each.cells)
        assert "no intervals" in table.note
    several = results(everywhere(plan(), ece=number))
    assert "no intervals" not in trainer_table(several).note


def test_accuracies_are_those_of_the_networks_themselves():
    def right(trainer, task, seed, method):
        return 0.9 if method == "sac" else 0.5 + 0.1 * (trainer == "cdan")

    table = accuracy_table(results(everywhere(plan(), accuracy=right)))
    assert [cell.value for cell in row(table, "CDAN").cells] == pytest.approx([60.0] * 3)
    assert [cell.value for cell in row(table, "DAN").cells] == pytest.approx([50.0] * 3)
    assert all(cell.mark for cell in row(table, "CDAN").cells)


def test_temperatures_are_geometric_means():
    def temperature(trainer, task, seed, method):
        return 1.0 if method == "vanilla" else 4.0 if task.endswith("product") else 1.0

    table = temperature_table(results(everywhere(plan(), temperature=temperature)))
    assert "Vanilla" not in [each.label for each in table.rows]
    assert row(table, "TS").cells[0].value == pytest.approx(2.0)


def test_how_sure_networks_are_is_told_of_source_and_target():
    known = [facts(trainer=name, seed=seed) for name in ("dan", "cdan") for seed in (0, 1)]
    records = [
        evaluated(trainer="dan", seed=seed, chosen="clean" if seed else "pixelate-2")
        for seed in (0, 1)
    ]
    table = sureness_table(results(records, facts=known))
    cells = row(table, "DAN").cells
    assert [cell.value for cell in cells] == pytest.approx([90.0, 95.0, 60.0, 95.0, 50.0])


def test_figures_show_the_numbers_of_the_tables(found):
    lines = trainer_lines(found)
    (panel,) = lines.panels
    assert panel.x == ("source only", "DAN", "CDAN")
    ts = next(series for series in panel.series if series.key == "ts")
    assert ts.y == pytest.approx([cell.value for cell in row(trainer_table(found), "TS").cells[:3]])
    (panel,) = accuracy_lines(found).panels
    assert panel.x == ("A2C", "A2P", "Avg")
    assert [series.label for series in panel.series] == ["source only", "DAN", "CDAN"]
    lines.draw()
    accuracy_lines(found).draw()


def test_every_training_has_a_row_in_the_data_and_a_diverged_one_its_reason(found):
    failure = Failure("art_to_product", "dan", 1, "the training diverged: in step 3")
    with_facts = results(found.records, facts=[facts()], failures=[failure])
    rows = list(csv.DictReader(io.StringIO(findings_of(with_facts).data["trainings.csv"])))
    assert [(r["task"], r["trainer"], r["seed"]) for r in rows] == [
        ("art_to_clipart", "cdan", "0"), ("art_to_product", "dan", "1"),
    ]  # fmt: skip
    assert rows[0]["target_accuracy"] == "0.6"
    assert rows[1]["failed"] == failure.reason
    assert rows[1]["target_accuracy"] == ""


def test_trainings_are_read_as_they_were_written():
    known = [facts(), facts(seed=1, target_accuracy=1 / 3)]
    failures = [Failure("art_to_product", "dan", 1, 'it "diverged", twice')]
    assert trainings_from_csv(trainings_to_csv(known, failures)) == (known, failures)
    assert trainings_from_csv(trainings_to_csv([], [])) == ([], [])


@pytest.mark.parametrize(
    "text", ["task,trainer,seed,failed\na,b,0,\n", "task,seed,failed\na,0,why\n", "a,b\n1,2\n"]
)
def test_a_table_of_something_else_is_not_read(text):
    with pytest.raises(FileError, match=r"trainings\.csv is damaged, or not that of a study"):
        trainings_from_csv(text)


def test_findings_without_any_network_say_so():
    failure = Failure("art_to_product", "dan", 1, "the training diverged: in step 3.")
    found = findings_of(results([], failures=[failure]))
    assert not found.tables
    assert found.remarks[0].startswith("1 of 12 trainings diverged and is left out. DAN on A2P")
    assert found.remarks[-1] == "No network was trained to its end."
