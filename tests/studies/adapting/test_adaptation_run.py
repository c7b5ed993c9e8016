"""A study of domain adaptation from images to tables, and again from what is stored."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from toy_adaptation import EVALUATIONS, IMAGES, METHODS, NETWORKS, PLAN, TRAINERS, N, toy_plan

from shiftcal import studies
from shiftcal.adaptation import Adapted
from shiftcal.errors import FileError, InputError, InputWarning, MissingData
from shiftcal.studies.adapting import estimate, pace, training
from shiftcal.studies.adapting.findings import findings_of
from shiftcal.studies.adapting.results import AdaptationResults
from shiftcal.studies.adapting.trainings_table import trainings_from_csv
from shiftcal.studies.stages import reporting
from shiftcal.studies.stages.rehearsal import Cost

pytest.importorskip("torch")
# Thirty images are tested on, in three bins.
pytestmark = pytest.mark.filterwarnings("ignore:30 images of .* are tested on")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pictures are drawn by the run that all tests share; nothing is timed for long."""
    monkeypatch.setattr(reporting, "write_figure", lambda *_: None)
    monkeypatch.setattr(estimate, "measured_rate", lambda _: 1000.0)
    monkeypatch.setattr(
        estimate, "costs_of", lambda variants, *_, **__: [Cost(1, 0)] * len(variants)
    )
    monkeypatch.setattr(pace, "_HEADS", 2)


def contents(folder, pattern="**/*"):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.glob(pattern))
        if file.is_file()
    }


def test_a_study_goes_from_images_to_tables_and_figures(adapted_once):
    done = adapted_once
    assert (done.scored, done.trained, done.evaluated) == (IMAGES, NETWORKS, EVALUATIONS)
    assert done.records == EVALUATIONS
    assert list(done.seconds) == ["opening", "features", "training", "evaluation", "report"]
    for name in ("ece-by-trainer", "accuracy", "ece-dan", "temperatures", "sureness", "paper"):
        assert (done.folder / "tables" / f"{name}.md").stat().st_size
    for name in ("ece-by-trainer", "accuracy"):
        assert (done.folder / "figures" / f"{name}.png").stat().st_size
    page = (done.folder / "report.md").read_text("utf-8")
    assert page.startswith("# Domain adaptation\n\nThree times of day.")
    assert "data/trainings.csv" in page
    about = json.loads((done.folder / "run.json").read_text("utf-8"))
    assert (about["study"], about["records"], about["diverged"]) == ("adaptation", EVALUATIONS, 0)
    assert (about["images_scored"], about["trainings"]) == (IMAGES, NETWORKS)
    assert "torch" in about["versions"]


def test_every_record_says_trainer_task_and_seed_and_where_its_logits_are(adapted_once):
    records = studies.Run(adapted_once.folder).records
    told = {(r.panel, r.target, r.split, r.variant) for r in records}
    assert told == {
        (trainer, task, seed, method)
        for trainer in TRAINERS
        for task in ("dawn_to_noon", "noon_to_dusk")
        for seed in (0, 1)
        for method in METHODS
    }
    for record in records:
        # A fifth of the source is calibrated on, the unseen half of the target is tested on.
        assert (record.n_calibration, record.n) == (N // 5, N // 2)
        assert (record.severity, record.corruption) == (None, record.target)
        assert (adapted_once.folder / record.arrays).is_file()
    sets = {r.method: r.n_sets for r in records}
    assert (sets["sac"], sets["sts"], sets["ts"]) == (3, 3, 1)
    assert {r.chosen for r in records if r.method == "sac"} <= {"clean", "pixelate-1", "pixelate-3"}


def test_accuracies_are_those_of_the_stored_networks(adapted_once):
    folder = adapted_once.folder
    for record in studies.Run(folder).records:
        if record.method == "vanilla":
            adapted = Adapted.open((folder / record.arrays).parent)
            assert record.accuracy == adapted.accuracy
            assert adapted.document["seed"] == record.split
            assert adapted.document["trainer"] == record.panel
            assert adapted.settings.iterations == 30


def test_every_number_can_be_computed_again_from_the_folder_alone(adapted_run):
    run = studies.Run(adapted_run)
    for record in run.records[::5]:
        assert run.recompute(record) == record
    with pytest.raises(InputError, match="no evaluation of SAC on dawn_to_dusk with dan and seed"):
        run.recompute(replace(run.records[0], panel="dan", label="SAC", target="dawn_to_dusk"))


def test_every_cell_of_the_main_table_is_a_mean_of_records(adapted_once):
    table = adapted_once.findings.tables["ece-by-trainer"]
    records = studies.Run(adapted_once.folder).records
    for row in table.rows:
        for cell, trainer in zip(row.cells, TRAINERS, strict=False):
            own = [r for r in records if (r.label, r.panel) == (row.label, trainer)]
            means = [fmean(r.ece for r in own if r.split == seed) for seed in (0, 1)]
            assert cell.value == pytest.approx(100 * fmean(means), rel=1e-12)


def test_what_is_shown_follows_from_the_plan_the_records_and_the_trainings_alone(adapted_once):
    run = studies.Run(adapted_once.folder)
    known = trainings_from_csv((run.folder / "data" / "trainings.csv").read_text("utf-8"))
    results = AdaptationResults(run.plan, tuple(run.records), *map(tuple, known))
    again = findings_of(results)
    assert again.remarks == adapted_once.findings.remarks
    assert again.tables == adapted_once.findings.tables
    assert again.figures == adapted_once.findings.figures


def test_run_again_nothing_is_done(adapted_run, times_of_day):
    before = contents(adapted_run)
    done = studies.reproduce(toy_plan(times_of_day), adapted_run, announce=told)
    assert (done.scored, done.trained, done.evaluated) == (0, 0, 0)
    after = contents(adapted_run)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"run.json"}
    about = json.loads((adapted_run / "run.json").read_text("utf-8"))
    assert (about["images_scored"], about["trainings"]) == (IMAGES, NETWORKS)


def told(found):
    assert (found.images, found.trainings, found.evaluations) == (0, 0, 0)
    assert str(found).startswith("all networks are trained already; all evaluations are made")


@pytest.mark.parametrize(
    ("old", "new", "scored", "trained", "evaluated"),
    [
        ("seeds = [0, 1]", "seeds = [1]", 0, 0, 0),
        ("seeds = [0, 1]", "seeds = [0, 1, 2]", 0, NETWORKS // 2, EVALUATIONS // 2),
        ("bins = 3", "bins = 2", 0, 0, EVALUATIONS),
        ('label = "MCC"', 'label = "Confusion"', 0, 0, 0),
        ('label = "MCC"', "temperature = 1.0", 0, 4, 4 * len(METHODS)),
        ('"sts", "oracle"]', '"sts"]', 0, 0, 0),
        ('"sac",', '"sac", { name = "sac", label = "KS", distance = "ks" },', 0, 0, NETWORKS),
        ('["noon", "dusk"]]', '["noon", "dawn"]]', 0, 6, 6 * len(METHODS)),
        ('["noon", "dusk"]]', '["dusk", "dawn"]]', 2 * N, 6, 6 * len(METHODS)),
        ("iterations = 30", "iterations = 31", 0, NETWORKS, EVALUATIONS),
    ],
)
def test_a_changed_plan_redoes_only_what_it_must(
    adapted_run, times_of_day, old, new, scored, trained, evaluated
):
    assert PLAN.count(old) == 1
    plan = toy_plan(times_of_day, PLAN.replace(old, new))
    before = contents(adapted_run)
    forecast = studies.forecast(plan, adapted_run)
    assert contents(adapted_run) == before
    found = (forecast.images, forecast.trainings, forecast.evaluations)
    assert found == (scored, trained, evaluated)
    done = studies.reproduce(plan, adapted_run)
    assert (done.scored, done.trained, done.evaluated) == found


def test_tables_are_made_again_without_images_and_without_torch(adapted_run, monkeypatch):
    before = contents(adapted_run)
    for name in ("tables", "data", "evaluated", "features"):
        shutil.rmtree(adapted_run / name)
    for name in ("records.csv", "report.md"):
        (adapted_run / name).unlink()
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    done = studies.rebuild(adapted_run)
    assert (done.scored, done.trained, done.evaluated) == (0, 0, EVALUATIONS)
    after = contents(adapted_run)
    for name, content in before.items():
        if name.startswith(("tables/", "data/")) or name in ("records.csv", "report.md"):
            assert after[name] == content, name


def test_a_network_that_is_not_there_is_named_when_tables_are_made_again(adapted_run):
    (folder,) = adapted_run.glob("trainings/dawn_to_noon/dan-*/seed-1")
    (folder / "adapt.json").unlink()
    with pytest.raises(
        FileError, match=r"no network of DAN on A2N, seed 1.*reproduce .*plan\.toml"
    ):
        studies.rebuild(adapted_run)


def test_a_network_that_is_gone_is_trained_again_to_the_same_numbers(adapted_run, times_of_day):
    records = studies.Run(adapted_run).records
    (folder,) = adapted_run.glob("trainings/dawn_to_noon/dan-*/seed-1")
    shutil.rmtree(folder)
    done = studies.reproduce(toy_plan(times_of_day), adapted_run)
    assert (done.trained, done.scored) == (1, 0)
    assert studies.Run(adapted_run).records == records


def test_outputs_that_are_damaged_are_named(adapted_run, times_of_day):
    shutil.rmtree(adapted_run / "evaluated")
    (folder,) = adapted_run.glob("trainings/dawn_to_noon/dan-*/seed-1")
    (folder / "target.npz").write_bytes(b"no more")
    with pytest.raises(FileError, match=r"target\.npz.*Have it made again: shiftcal reproduce"):
        studies.rebuild(adapted_run)
    (folder / "target.npz").unlink()
    with pytest.raises(FileError, match=r"lacks something .*target\.npz.*Remove the folder"):
        studies.rebuild(adapted_run)


def test_damaged_facts_are_looked_at_again(adapted_run):
    before = contents(adapted_run, "data/*")
    file = adapted_run / "evaluated" / "networks.json"
    for text in ("{", "[]", '{"a": {"task": 3}}', '{"a": {}}'):
        file.write_text(text)
        assert studies.rebuild(adapted_run).evaluated == 0
        assert contents(adapted_run, "data/*") == before


def test_a_training_that_diverges_is_told_and_not_tried_again(
    adapted_run, times_of_day, monkeypatch
):
    from shiftcal.errors import FitError

    whole, tried = training.adapt, []

    def adapt(source, target, folder, **options):
        tried.append((options["trainer"], options["seed"]))
        if tried[-1] == ("jan", 1):
            raise FitError("the training diverged: in step 3 of 30 the loss is nan. Use less.")
        return whole(source, target, folder, **options)

    monkeypatch.setattr(training, "adapt", adapt)
    plan = toy_plan(times_of_day, PLAN.replace('"dan",', '"dan", "jan",'))
    done = studies.reproduce(plan, adapted_run)
    assert sorted(tried) == [("jan", 0), ("jan", 0), ("jan", 1), ("jan", 1)]
    assert done.records == EVALUATIONS + 2 * len(METHODS)
    assert done.findings.remarks[0] == (
        "2 of 16 trainings diverged and are left out. JAN on A2N, seed 1: the training diverged: "
        "in step 3 of 30 the loss is nan. JAN on N2D, seed 1: the training diverged: in step 3 of "
        "30 the loss is nan."
    )
    tried.clear()
    again = studies.reproduce(plan, adapted_run)
    assert (tried, again.trained, again.records) == ([], 0, done.records)
    assert studies.rebuild(adapted_run).findings.remarks == again.findings.remarks
    about = json.loads((adapted_run / "run.json").read_text("utf-8"))
    assert about["diverged"] == 2
    assert "the loss is nan" in (adapted_run / "data" / "trainings.csv").read_text("utf-8")


def test_a_real_training_that_diverges_is_left_out(tmp_path, times_of_day):
    text = PLAN.replace('"source-only", "dan", { name = "mcc", label = "MCC" }', WILD)
    plan = replace(toy_plan(times_of_day, text), seeds=(0,))
    plan = replace(plan, tasks=plan.tasks[:1], domains=plan.domains[:2])
    done = studies.reproduce(plan, tmp_path / "run")
    assert done.records == len(METHODS)
    assert done.findings.remarks[0].startswith("1 of 2 trainings diverged and is left out. wild on")
    assert "Train into another folder" not in done.findings.remarks[0]


WILD = '"source-only", { name = "safn", label = "wild", lr = 1e30 }'


@pytest.mark.slow
def test_two_workers_come_to_the_same_networks_and_numbers(adapted_once, times_of_day, tmp_path):
    done = studies.reproduce(toy_plan(times_of_day), tmp_path / "run", workers=2)
    assert done.trained == NETWORKS
    ours, theirs = studies.Run(tmp_path / "run").records, studies.Run(adapted_once.folder).records
    assert ours == theirs


def test_a_domain_that_is_not_there_is_explained(times_of_day, tmp_path):
    data = shutil.copytree(times_of_day, tmp_path / "data")
    (data / "dusk.npz").unlink()
    plan = toy_plan(data)
    with pytest.raises(MissingData) as caught:
        studies.reproduce(plan, tmp_path / "run")
    text = str(caught.value)
    assert "dusk.npz" in text
    assert f"To get it: Dusk: wait longer, and put it into {data}" in text
    assert "--skip-missing runs without: dusk." in text
    assert not (tmp_path / "run").exists()


def test_tasks_of_a_missing_domain_are_left_out_if_that_is_wanted(times_of_day, tmp_path):
    data = shutil.copytree(times_of_day, tmp_path / "data")
    (data / "dusk.npz").unlink()
    done = studies.reproduce(toy_plan(data), tmp_path / "run", skip_missing=True)
    assert done.trained == NETWORKS // 2
    assert "dusk" in done.missing[0]
    assert studies.Run(tmp_path / "run").plan.tasks == (("dawn", "noon"),)
    assert "Left out, because it is not there" in (tmp_path / "run" / "report.md").read_text()
    assert studies.rebuild(tmp_path / "run").missing == done.missing
    (data / "noon-2.npz").unlink()
    for skip in (True, False):  # no task is left
        with pytest.raises(MissingData, match=r"noon-1\.npz \+ .*noon-2\.npz") as caught:
            studies.forecast(toy_plan(data), tmp_path / "run", skip_missing=skip)
        assert "--skip-missing" not in str(caught.value)


def test_images_that_cannot_be_judged_are_refused_before_anything_is_written(
    tmp_path, times_of_day
):
    data = shutil.copytree(times_of_day, tmp_path / "data")
    with np.load(data / "dusk.npz") as held:
        images, labels = held["images"], held["labels"]
    np.savez(data / "dusk.npz", images=images)
    with pytest.raises(InputError, match=r"dusk has no labels, and nothing can be judged"):
        studies.reproduce(toy_plan(data), tmp_path / "run")
    np.savez(data / "dusk.npz", images=images[:4], labels=labels[:4])
    with pytest.raises(InputError, match=r"for each of the 3 bins of the ECE; half of it is 2"):
        studies.reproduce(toy_plan(data), tmp_path / "run")
    np.savez(data / "dusk.npz", images=images[:50], labels=labels[:50])
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("default")
def test_an_ece_of_few_images_is_warned_of(times_of_day, tmp_path):
    plan = replace(toy_plan(times_of_day), bins=4)
    with pytest.warns(InputWarning, match=r"30 images of noon are tested on, in 4 bins"):
        studies.forecast(plan, tmp_path / "run")


def test_features_of_a_cache_are_not_computed_again(times_of_day, tmp_path):
    plan = replace(toy_plan(times_of_day), seeds=(0,))
    plan = replace(plan, trainers=plan.trainers[:1], methods=plan.methods[:2])
    means = studies.Means(cache=tmp_path / "cache")
    first = studies.reproduce(plan, tmp_path / "one", means=means)
    assert studies.forecast(plan, tmp_path / "two", means=means).images == 0
    second = studies.reproduce(plan, tmp_path / "two", means=means)
    assert (first.scored, second.scored) == (IMAGES, 0)
    ours, theirs = (studies.Run(tmp_path / name).records for name in ("one", "two"))
    assert ours == theirs


def test_progress_is_told_in_lines(times_of_day, tmp_path):
    from shiftcal.scoring.run import Reporting

    lines = []
    plan = replace(toy_plan(times_of_day), seeds=(0,), methods=toy_plan(times_of_day).methods[:2])
    plan = replace(plan, training=replace(plan.training, threads=1))
    job = Reporting(shown=False, line=lines.append)
    # One after the other where a training has all threads; the toy is frozen, and so has one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "threads_of", lambda _: None)
        studies.reproduce(plan, tmp_path / "run", means=studies.Means(reporting=job))
    assert lines[0] == "training 1 of 6: source only on A2N, seed 0"
    assert lines[-1] == "training 6 of 6: MCC on N2D, seed 0"


def test_a_folder_of_something_else_is_refused(tmp_path, times_of_day):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(FileError, match=r"holds 'thesis\.tex' and is not the folder of a study"):
        studies.reproduce(toy_plan(times_of_day), tmp_path)


def test_a_device_that_is_not_here_is_refused_first(tmp_path, times_of_day):
    plan = toy_plan(times_of_day)
    plan = replace(plan, training=replace(plan.training, device="cuda:99"), where="mine.toml")
    with pytest.raises(InputError, match=r"^mine\.toml \[training\] device must be one that torch"):
        studies.reproduce(plan, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_that_a_method_does_not_take_are_refused_first(tmp_path, times_of_day):
    text = PLAN.replace('"sac",', '{ name = "sac", label = "SAC", distance = "km" },')
    with pytest.raises(InputError, match=r"methods 5: distance must be"):
        studies.reproduce(toy_plan(times_of_day, text), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_plan_that_is_changed_meanwhile_stops_the_run(adapted_run, times_of_day, monkeypatch):
    (folder,) = adapted_run.glob("trainings/dawn_to_noon/dan-*/seed-1")
    shutil.rmtree(folder)
    whole = training.adapt

    def adapt(*given, **options):
        (adapted_run / "plan.toml").write_text("another")
        return whole(*given, **options)

    monkeypatch.setattr(training, "adapt", adapt)
    with pytest.raises(FileError, match="another run with another plan is using this folder"):
        studies.reproduce(toy_plan(times_of_day), adapted_run)
