"""Domain adaptation: a toy study trained and evaluated, and tables of records made by hand."""

from __future__ import annotations

import json
import shutil
from statistics import fmean

import numpy as np
import pytest
from study_records import LABELS, adaptation_plan, evaluated, everywhere, facts
from toy_adaptation import EVALUATIONS, IMAGES, NETWORKS, PLAN, toy_plan, write_domains

from shiftcal import studies
from shiftcal.adaptation import Adapted
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.studies.domain_adaptation import findings_of

pytest.importorskip("torch")


def test_a_study_goes_from_images_to_tables_and_figures(adapted_once):
    done = adapted_once
    found = (done.scored, done.trained, done.evaluated, done.records)
    assert found == (IMAGES, NETWORKS, EVALUATIONS, EVALUATIONS)
    names = ["ece-by-trainer", "accuracy", "ece-source-only", "ece-dan", "ece-mcc"]
    assert list(done.findings.tables) == [*names, "confidence"]
    assert set(done.findings.figures) == {"ece-by-trainer", "accuracy"}
    about = json.loads((done.folder / "run.json").read_text("utf-8"))
    assert (about["trained"], about["diverged"]) == (NETWORKS, 0)


def test_records_are_those_of_the_stored_networks(adapted_once):
    run = studies.Run(adapted_once.folder)
    for record in run.records[::13]:
        assert run.recompute(record) == record
    record = next(r for r in run.records if r.variant == "vanilla")
    adapted = Adapted.open((adapted_once.folder / record.arrays).parent)
    correct = adapted.target.logits().argmax(axis=1) == adapted.target.labels
    assert record.accuracy == pytest.approx(correct.mean())


@pytest.mark.parametrize(
    ("old", "new", "scored", "trained", "evaluated"),
    [
        ("about = ", "about = 'Else.' # ", 0, 0, 0),
        ("bins = 3", "bins = 2", 0, 0, EVALUATIONS),
        ("seeds = [0, 1]", "seeds = [1]", 0, 0, 0),
        ('"sac", "sts"', '"sac"', 0, 0, 0),
        ("iterations = 30", "iterations = 20", 0, NETWORKS, EVALUATIONS),
    ],
)
def test_a_changed_plan_redoes_only_what_it_must(
    adapted_run, times_of_day, undrawn, old, new, scored, trained, evaluated
):
    assert PLAN.count(old) == 1
    done = studies.reproduce(toy_plan(times_of_day, PLAN.replace(old, new)), adapted_run)
    assert (done.scored, done.trained, done.evaluated) == (scored, trained, evaluated)


def test_tables_are_made_again_from_the_folder_alone(adapted_run, adapted_once, undrawn):
    for name in ("tables", "features", "evaluated"):
        shutil.rmtree(adapted_run / name)
    done = studies.rebuild(adapted_run)
    assert (done.scored, done.trained, done.evaluated) == (0, 0, EVALUATIONS)
    for file in (adapted_once.folder / "tables").iterdir():
        assert (adapted_run / "tables" / file.name).read_bytes() == file.read_bytes()


def test_a_network_that_is_gone_is_named_and_trained_again(adapted_run, times_of_day, undrawn):
    before = studies.Run(adapted_run).records
    network = (adapted_run / before[0].arrays).parent
    shutil.rmtree(network)
    half_written = network.with_name(".shiftcal-0.tmp")  # a folder that a killed process left
    half_written.mkdir()
    with pytest.raises(FileError, match=r"has no network of .*shiftcal reproduce"):
        studies.rebuild(adapted_run)
    assert studies.reproduce(toy_plan(times_of_day), adapted_run).trained == 1
    assert studies.Run(adapted_run).records == before
    assert not half_written.exists()


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_index_of_networks_is_named(adapted_run, text):
    (adapted_run / "trainings" / "index.json").write_text(text)
    with pytest.raises(FileError, match=r"index\.json .*damaged|index\.json is not"):
        studies.rebuild(adapted_run)


def test_labels_that_changed_have_networks_of_their_own(tmp_path, undrawn):
    data = write_domains(tmp_path / "data")
    folder = tmp_path / "run"
    studies.reproduce(toy_plan(data), folder)
    with np.load(data / "dusk.npz") as opened:
        arrays = dict(opened)
    np.savez(data / "dusk.npz", images=arrays["images"], labels=arrays["labels"][::-1])
    done = studies.reproduce(toy_plan(data), folder)
    assert (done.scored, done.trained) == (0, NETWORKS // 2)  # the task to dusk


def test_a_training_that_diverges_is_left_out_and_not_tried_again(tmp_path, times_of_day, undrawn):
    text = PLAN.replace('"dan"', '{ name = "dan", lr = 1e30 }')
    plan = toy_plan(times_of_day, text)
    done = studies.reproduce(plan, tmp_path / "run")
    table = done.findings.data["trainings.csv"]
    lost = table.count("diverge")
    assert lost
    assert done.records == EVALUATIONS - 7 * lost
    assert studies.reproduce(plan, tmp_path / "run").trained == 0
    assert studies.rebuild(tmp_path / "run").records == done.records


def test_two_workers_train_the_same_networks(adapted_once, times_of_day, tmp_path, undrawn):
    studies.reproduce(toy_plan(times_of_day), tmp_path / "run", workers=2)
    assert studies.Run(tmp_path / "run").records == studies.Run(adapted_once.folder).records


def test_a_missing_domain_is_explained_and_its_tasks_can_be_left_out(tmp_path, undrawn):
    data = write_domains(tmp_path / "data")
    (data / "dusk.npz").unlink()
    with pytest.raises(MissingData, match="wait longer"):
        studies.reproduce(toy_plan(data), tmp_path / "run")
    done = studies.reproduce(toy_plan(data), tmp_path / "run", skip_missing=True)
    assert done.trained == NETWORKS // 2
    assert len(done.missing) == 1
    (data / "noon-1.npz").unlink()
    with pytest.raises(MissingData):
        studies.reproduce(toy_plan(data), tmp_path / "other", skip_missing=True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bins = 3", "bins = 40", "for each of the 40 bins"),
        ("severities = [1, 3]", "severities = [9]", "1 to 5"),
        ('"dan"', '{ name = "dan", lrr = 1 }', "lrr"),
        ("[training.settings]", '[training]\ntransform = "x"\n[training.settings]', "transform"),
    ],
)
def test_what_cannot_be_run_is_rejected_first(tmp_path, times_of_day, old, new, words):
    with pytest.raises(InputError, match=words):
        studies.reproduce(toy_plan(times_of_day, PLAN.replace(old, new)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- tables of records made by hand -----------------------------------------------------------

METHOD = {name: i for i, name in enumerate(LABELS)}


def number(trainer, task, seed, method):
    """A different ECE for each: 0.01 a method, 0.1 a trainer, 0.001 a task or a seed."""
    which = ("source-only", "dan", "cdan").index(trainer)
    return 0.1 * which + 0.01 * (1 + METHOD[method]) + 0.001 * (2 * task.endswith("product") + seed)


@pytest.fixture
def tables():
    networks = [facts(trainer=t, seed=s) for t in ("source-only", "dan", "cdan") for s in (0, 1)]
    return findings_of(
        adaptation_plan(), everywhere(adaptation_plan(), ece=number), networks
    ).tables


def row(table, label):
    return next(row for row in table.rows if row.label == label)


def test_the_task_table_has_the_layout_of_the_papers_table_3(tables):
    table = tables["ece-cdan"]
    assert [column.name for column in table.columns] == ["A2C", "A2P", "Avg"]
    values = [cell.value for cell in row(table, "SAC").cells]
    expected = [
        100 * fmean(number("cdan", task, seed, "sac") for seed in (0, 1))
        for task in ("art_to_clipart", "art_to_product")
    ]
    assert values == pytest.approx([*expected, fmean(expected)])
    assert row(table, "Vanilla").cells[0].mark
    assert not any(cell.mark for cell in row(table, "Oracle").cells)


def test_the_trainer_table_has_the_layout_of_the_papers_table_4(tables):
    table = tables["ece-by-trainer"]
    assert [c.name for c in table.columns] == ["source only", "DAN", "CDAN", "mean, adapted"]
    cells = row(table, "TS").cells
    assert cells[3].value == pytest.approx(fmean([cells[1].value, cells[2].value]))


def test_confidence_and_accuracy_of_source_and_target_are_shown(tables):
    values = [cell.value for cell in row(tables["confidence"], "CDAN").cells[:4]]
    assert values == pytest.approx([90.0, 95.0, 60.0, 95.0])


def test_a_seed_without_one_of_the_tasks_does_not_count_in_the_mean_over_them():
    whole = [
        evaluated(trainer="cdan", task=task, seed=seed, method="sac", ece=0.1 * (1 + seed))
        for task in ("art_to_clipart", "art_to_product")
        for seed in (0, 1)
    ]
    cells = row(findings_of(adaptation_plan(), whole[:-1]).tables["ece-cdan"], "SAC").cells
    assert [cell.value for cell in cells] == pytest.approx([15.0, 10.0, 10.0])
