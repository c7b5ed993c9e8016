"""Runs of a toy study: from images to records and tables, again, changed, and damaged."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from toy_study import ALL, net, toy_plan, write_data

from shiftcal import corrupt, studies
from shiftcal.corruptions import Strengths
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.files import lock
from shiftcal.studies.images import ImagesPipeline
from shiftcal.studies.plan import LadderPlan, NaturalSet
from shiftcal.studies.sources import INDEX, Archive

COMMAND = r"shiftcal reproduce \S*plan\.toml -o \S*run"
SCORED = 7 * 120 + 90
EVALUATIONS = 2 * 5 * 7


def natural(data, **changes):
    labels = str(data / "natural-labels.npy")
    return NaturalSet("own", "Own", (str(data / "natural.npy"),), **{"labels": labels, **changes})


def file_of(folder, name):
    return folder / Archive.open(folder).entries[name].file


def test_a_run_has_records_tables_figures_and_a_report(once, data):
    folder = once.folder
    assert (once.scored, once.evaluated, once.records) == (SCORED, EVALUATIONS, EVALUATIONS)
    assert list(once.seconds) == ["opening", "scoring", "evaluation", "report"]
    assert studies.Run(folder).plan == toy_plan(data, methods=ALL)
    assert set(once.findings.tables) == {"mean-ece", "full", "temperatures", "chosen"}
    for kind, endings in (("tables", "md csv"), ("figures", "png svg json")):
        for name in getattr(once.findings, kind):
            assert all((folder / kind / f"{name}.{e}").stat().st_size for e in endings.split())
    page = (folder / "report.md").read_text("utf-8")
    assert page.startswith("# Synthetic shift\n")
    assert "figures/ece-means.png" in page
    about = json.loads((folder / "run.json").read_text("utf-8"))
    assert about["scored"] == SCORED


def test_scores_are_those_of_the_model_on_the_corrupted_images(once, data):
    images = np.load(data / "test.npy")
    stored = Archive.open(once.folder).scores("fog-5")
    logits, features = net(corrupt(images, "fog", severity=5))
    assert np.allclose(stored.logits, logits, atol=1e-5)
    assert np.allclose(stored.features, features, atol=1e-5)
    assert np.array_equal(stored.labels, np.load(data / "test-labels.npy"))


def test_every_record_is_computed_again_to_the_last_digit(once):
    run = studies.Run(once.folder)
    for record in run.records[::9]:
        assert run.recompute(record) == record
    with pytest.raises(InputError, match="has no evaluation"):
        run.recompute(replace(run.records[0], key="of another plan"))


def test_draws_and_workers_do_not_change_records(tmp_path, data, undrawn):
    plan = toy_plan(data, methods=("ts", "sac"), study="peek")
    plan = replace(plan, options={"sizes": [10], "draws": 2})
    records = []
    for workers in (1, 2):
        studies.reproduce(plan, tmp_path / str(workers), workers=workers)
        records.append(studies.Run(tmp_path / str(workers)).records)
    assert records[0] == records[1]
    drawn = next(record for record in records[0] if record.draw == 1)
    assert studies.Run(tmp_path / "1").recompute(drawn) == drawn


def test_run_again_with_a_changed_plan_only_what_is_missing_is_done(finished, data, undrawn):
    assert studies.reproduce(toy_plan(data, methods=ALL), finished).evaluated == 0
    for changes, scored, evaluated in (
        ({"bins": 4}, 0, EVALUATIONS),
        ({"seeds": (0, 1, 2)}, 0, EVALUATIONS // 2),
        ({"shifts__severities": (0, 1)}, 0, 0),
        # Vanilla, TS and the weighting methods do not learn from surrogate sets.
        ({"calibration__severities": (1, 3, 5)}, 120, 2 * 5 * 2),
        ({"shifts__sets": (natural(data),)}, 60, 2 * 7),
    ):
        done = studies.reproduce(toy_plan(data, methods=ALL, **changes), finished)
        assert (done.scored, done.evaluated) == (scored, evaluated), changes
    again = studies.reproduce(toy_plan(data, methods=ALL), finished)
    assert (again.scored, again.evaluated) == (0, 0)


def test_what_an_earlier_plan_wrote_is_gone_and_other_files_stay(finished, data, undrawn):
    (finished / "tables" / "mine.csv").write_text("mine")
    plan = toy_plan(data, methods=("vanilla", "oracle"), seeds=(1,))
    done = studies.reproduce(plan, finished)
    assert "chosen" not in done.findings.tables
    assert not (finished / "tables" / "chosen.csv").exists()
    assert (finished / "tables" / "mine.csv").exists()


def test_own_strengths_are_scored(tmp_path, data, undrawn):
    fine = LadderPlan("fine", "pixelate", ((0.9,), (0.6,)))
    plan = toy_plan(data, shifts__corruptions=("fine",), shifts__severities=(1, 2))
    studies.reproduce(replace(plan, ladders=(fine,)), tmp_path / "run")
    made = Strengths("pixelate", [0.9, 0.6], name="x")
    images = corrupt(np.load(data / "test.npy"), made, severity=2)
    stored = Archive.open(tmp_path / "run").scores("fine-2")
    assert np.allclose(stored.logits, net(images)[0], atol=1e-5)


def test_everything_that_is_missing_is_named_and_can_be_left_out(data, tmp_path, undrawn):
    gone = natural(data, fetch="draw them")
    gone = replace(gone, images=("nowhere.npz", "elsewhere.npz"))
    plan = toy_plan(data, methods=("ts", "cpcs"), data__train=("lost.npy",), shifts__sets=(gone,))
    with pytest.raises(MissingData) as caught:
        ImagesPipeline.opened(plan, skip_missing=False)
    for words in ("nowhere.npz", "elsewhere.npz", "To get it: draw them", "lost.npy", "--skip"):
        assert words in str(caught.value)
    done = studies.reproduce(plan, tmp_path / "run", skip_missing=True)
    assert len(done.missing) == 2
    assert [m.name for m in studies.Run(tmp_path / "run").plan.methods] == ["ts"]
    assert studies.rebuild(tmp_path / "run").missing == done.missing
    with pytest.raises(MissingData, match="the images"):
        ImagesPipeline.opened(toy_plan(data, data__images=("gone.npy",)), skip_missing=True)


def test_images_that_cannot_be_judged_are_rejected_first(data, tmp_path):
    for changes, words in (
        ({"calibration__images": 118}, "5 bins of the ECE, better ten; there are 2"),
        ({"shifts__sets": (natural(data, labels=None),)}, "Own must have labels"),
    ):
        with pytest.raises(InputError, match=words):
            studies.reproduce(toy_plan(data, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_limit_takes_every_class_by_its_share(data):
    plan = toy_plan(data, data__limit=90, calibration__images=60)
    images = ImagesPipeline.opened(plan, skip_missing=False).images
    assert np.bincount(images.labels).tolist() == [30, 30, 30]


# --- files that are damaged, swapped or of another plan ---------------------------------------


def test_swapped_scores_are_rejected_and_made_again(finished, data, once, undrawn):
    a, b = file_of(finished, "fog-1"), file_of(finished, "fog-5")
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(content)
    shutil.rmtree(finished / "evaluated")
    with pytest.raises(FileError, match=rf"\.npz is missing, damaged or was replaced.*{COMMAND}"):
        studies.rebuild(finished)
    assert studies.reproduce(toy_plan(data, methods=ALL), finished).scored == 2 * 120
    assert studies.Run(finished).records == studies.Run(once.folder).records


@pytest.mark.parametrize(("old", "new"), [("{", "["), ('"fog-1"', '"fog-2"')])
def test_a_damaged_index_is_named(finished, old, new):
    file = finished / INDEX
    file.write_text(file.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(FileError, match=rf"index\.json .*damaged.*{COMMAND}"):
        studies.rebuild(finished)


def test_damaged_outcomes_are_evaluated_again(finished, once, undrawn):
    file = next((finished / "evaluated").iterdir())
    document = json.loads(file.read_text("utf-8"))
    ece = json.dumps(next(iter(document["outcomes"].values()))["ece"])
    file.write_text(file.read_text("utf-8").replace(ece, "NaN"), "utf-8")
    assert studies.rebuild(finished).evaluated == len(document["outcomes"])
    assert studies.Run(finished).records == studies.Run(once.folder).records


def test_a_plan_in_the_folder_that_was_changed_is_rejected(finished, data, undrawn):
    file = finished / "plan.toml"
    plan = studies.Run(finished).plan
    file.write_text(studies.to_toml(replace(plan, bins=4)), "utf-8")
    assert studies.rebuild(finished).evaluated == EVALUATIONS
    other = replace(plan, model=replace(plan.model, spec=("other.onnx",)))
    file.write_text(studies.to_toml(other), "utf-8")
    with pytest.raises(FileError, match="another model or other images"):
        studies.rebuild(finished)
    file.write_bytes(b"study = '\xff\xfe'")
    with pytest.raises(FileError, match="not UTF-8"):
        studies.rebuild(finished)
    file.unlink()
    with pytest.raises(FileError, match=r"plan\.toml could not be read"):
        studies.rebuild(finished)
    assert studies.reproduce(toy_plan(data, methods=ALL), finished).scored == 0


def test_a_folder_of_something_else_is_not_touched(tmp_path, data):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(FileError, match="not the folder of a study"):
        studies.reproduce(toy_plan(data), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_is_used_by_one_run_at_a_time(finished, data):
    with (
        lock(finished / "plan.toml"),
        pytest.raises(FileError, match="in use by another run"),
    ):
        studies.reproduce(toy_plan(data, methods=ALL, seeds=(7,)), finished)
    assert (finished / "run.json").exists()


@pytest.mark.parametrize("what", ["images", "labels"])
def test_images_that_changed_in_place_are_noticed(tmp_path, undrawn, what):
    data = write_data(tmp_path / "data")
    plan = toy_plan(data, methods=("ts",), seeds=(0,))
    studies.reproduce(plan, tmp_path / "run")
    file = data / ("test.npy" if what == "images" else "test-labels.npy")
    np.save(file, np.load(file)[::-1])
    with pytest.raises(FileError, match=f"holds a bank with {what}"):
        studies.reproduce(plan, tmp_path / "run")
