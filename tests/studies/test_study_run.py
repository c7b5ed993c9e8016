"""Whole runs: gone on with, made again without a model, refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import toy_study
from toy_study import ALL, PLAIN, toy_plan

from shiftcal import studies
from shiftcal.errors import FileError, InputError, MissingData
from shiftcal.studies import run
from shiftcal.studies.archive import INDEX, Archive
from shiftcal.studies.catalog.base import Findings
from shiftcal.studies.plan.plan import NaturalSet
from shiftcal.studies.stages import sources

NOWHERE = NaturalSet("nowhere", "Nowhere", ("/nowhere.npy",))


@pytest.fixture
def undrawn(monkeypatch):
    """No tables and figures, which take seconds."""
    monkeypatch.setattr(run, "report", lambda *_, **__: Findings({}, {}))


def numbers(folder):
    """Records and figures as they are on disk."""
    found = {
        file.name: json.loads(file.read_text("utf-8")) for file in folder.glob("figures/*.json")
    }
    return studies.Run(folder).records, found


def test_a_run_says_what_it_did_and_where_everything_is(once, data):
    assert (once.scored, once.evaluated, once.records) == (7 * 120 + 90, 70, 70)
    assert set(once.seconds) == {"opening", "scoring", "evaluation", "report"}
    names = {"plan.toml", "scores", "splits", "evaluated", "records.csv", "tables", "figures"}
    names |= {"report.md", "report.json", "run.json"}
    assert {file.name for file in once.folder.iterdir()} == names
    assert studies.Run(once.folder).plan == toy_plan(data, methods=ALL)
    told = json.loads((once.folder / "run.json").read_text("utf-8"))
    assert told["images_scored"] == 930
    assert told["records"] == 70
    assert told["versions"]["shiftcal"]
    assert told["scoring_seconds"] == told["seconds"]["scoring"] > 0
    for seed in ("0", "1"):
        with np.load(once.folder / "splits" / f"seed-{seed}.npz") as split:
            digests = {
                name: hashlib.sha256(split[name].astype("<i8").tobytes()).hexdigest()
                for name in ("calibration", "test")
            }
        assert told["splits"][seed] == digests
    for name in once.findings.tables:
        assert {file.suffix for file in once.folder.glob(f"tables/{name}.*")} >= {".md", ".csv"}
    for name in once.findings.figures:
        assert {file.suffix for file in once.folder.glob(f"figures/{name}.*")} == {
            ".json",
            ".png",
            ".svg",
        }


def test_every_record_is_computed_again_to_the_last_digit(once):
    opened = studies.Run(once.folder)
    for record in opened.records:
        assert opened.recompute(record) == record
        assert (once.folder / record.arrays).exists()


def test_records_that_are_not_in_the_plan_are_refused(once):
    opened = studies.Run(once.folder)
    record = opened.records[0]
    for changes in (
        *({"split": 9}, {"draw": 1}, {"target": "snow-1"}, {"variant": "x"}),
        *({"panel": "x"}, {"setting": "x"}, {"calibration": "fog"}),
    ):
        with pytest.raises(InputError, match="has no evaluation of VANILLA"):
            opened.recompute(replace(record, **changes))


def test_a_run_is_made_again_without_model_and_images(finished, once, monkeypatch):
    def none(*_):
        raise AssertionError("no model is needed")

    monkeypatch.setattr(sources, "as_model", none)
    monkeypatch.setattr(sources, "as_image_set", none)
    before = numbers(finished)
    for name in ("tables", "figures", "evaluated", "splits"):
        shutil.rmtree(finished / name)
    (finished / "records.csv").unlink()
    done = studies.rebuild(finished)
    assert (done.scored, done.evaluated) == (0, 70)
    assert numbers(finished) == before == numbers(once.folder)
    assert done.findings == once.findings


def test_a_run_made_again_still_says_what_was_left_out_and_scored(tmp_path, data):
    plan = toy_plan(data, methods=("ts", "cpcs"), shifts__sets=(NOWHERE,))
    first = studies.reproduce(plan, tmp_path, skip_missing=True)
    assert (first.scored, len(first.missing)) == (7 * 120 + 90, 1)
    page, told = (tmp_path / name for name in ("report.md", "run.json"))
    before, about = page.read_text("utf-8"), json.loads(told.read_text("utf-8"))
    assert "Left out, because it is not there" in before
    done = studies.rebuild(tmp_path)
    assert done.scored == 0
    assert done.missing == first.missing
    assert page.read_text("utf-8") == before
    again = json.loads(told.read_text("utf-8"))
    for name in ("left_out", "images_scored", "scoring_seconds", "splits", "remarks"):
        assert again[name] == about[name], name
    assert "scoring" not in again["seconds"]
    other = toy_plan(data, methods=("ts", "cpcs"), data__train_limit=60)
    more = studies.reproduce(other, tmp_path)
    assert more.missing == ()
    again = json.loads(told.read_text("utf-8"))
    assert (again["images_scored"], again["left_out"]) == (60, [])
    assert "Left out" not in page.read_text("utf-8")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"left_out": 3, "images_scored": "x"}'])
def test_what_a_damaged_file_said_of_the_run_before_is_not_known(finished, undrawn, text):
    (finished / "run.json").write_text(text)
    assert studies.rebuild(finished).missing == ()
    assert json.loads((finished / "run.json").read_text("utf-8"))["images_scored"] == 0


def test_tables_of_an_earlier_plan_are_gone(finished, data):
    natural = NaturalSet("own", "Own", (str(data / "natural.npy"),),
                         labels=str(data / "natural-labels.npy"))  # fmt: skip
    before = {file.name for file in (finished / "tables").iterdir()}
    (finished / "tables" / "mine.csv").write_text("mine")
    plan = toy_plan(data, study="natural", methods=("ts", "sac"), shifts__sets=(natural,))
    done = studies.reproduce(plan, finished)
    after = {file.name for file in (finished / "tables").iterdir()}
    assert before - after
    assert {name.partition(".")[0] for name in after} == {*done.findings.tables, "mine"}
    figures = {file.stem for file in (finished / "figures").iterdir()}
    assert figures == set(done.findings.figures)


def test_a_draw_is_computed_again_to_the_last_digit(tmp_path, data, undrawn):
    options = {"sizes": [4, 9], "draws": 3}
    plan = toy_plan(data, study="peek", methods=("sac",), options=options)
    studies.reproduce(plan, tmp_path)
    opened = studies.Run(tmp_path)
    drawn = [record for record in opened.records if record.draw == 2]
    assert len(drawn) == 2 * 2 * 5
    for record in drawn:
        assert opened.recompute(record) == record


def test_scores_that_the_plan_asks_for_and_are_not_there(finished):
    plan = studies.Run(finished).plan
    more = replace(plan, shifts=replace(plan.shifts, severities=(0, 2)))
    (finished / "plan.toml").write_text(studies.to_toml(more), "utf-8")
    with pytest.raises(FileError, match=r"has no scores of fog-2.*shiftcal reproduce .*plan\.toml"):
        studies.rebuild(finished)


@pytest.mark.parametrize(
    ("table", "changes", "words"),
    [
        ("model", {"spec": ("python:toy_study:other_net?key=o",)}, "its model or its images"),
        ("data", {"images": ("elsewhere.npy",)}, "its model or its images"),
        ("data", {"train_limit": 9}, "its model or its images"),
        ("shifts", {"seed": 3}, "its model or its images"),
    ],
)
def test_scores_of_another_model_are_not_shown_as_those_of_the_plan(
    finished, table, changes, words
):
    plan = studies.Run(finished).plan
    other = replace(plan, **{table: replace(getattr(plan, table), **changes)})
    (finished / "plan.toml").write_text(studies.to_toml(other), "utf-8")
    with pytest.raises(FileError, match=f"says other things about {words} than when the scores"):
        studies.rebuild(finished)


def test_a_plan_with_other_bins_can_be_made_again_where_it_is(finished, undrawn):
    plan = studies.Run(finished).plan
    (finished / "plan.toml").write_text(studies.to_toml(replace(plan, bins=4)), "utf-8")
    assert studies.rebuild(finished).evaluated == 70


def test_a_changed_plan_that_was_interrupted_does_not_show_old_scores(
    finished, data, monkeypatch, undrawn
):
    def stopped(batch):
        if len(batch) > 1:  # one image is tried for its features
            raise KeyboardInterrupt
        return toy_study.other_net(batch)

    monkeypatch.setattr(toy_study, "stopped", stopped, raising=False)
    other = ("python:toy_study:stopped?key=s&raw=true&batch_size=40",)
    with pytest.raises(KeyboardInterrupt):
        studies.reproduce(toy_plan(data, methods=ALL, model__spec=other), finished)
    with pytest.raises(FileError, match="no finished scores"):
        studies.rebuild(finished)
    done = studies.reproduce(toy_plan(data, methods=ALL), finished)
    assert (done.scored, done.evaluated) == (0, 0)


def test_what_is_no_run_is_refused(tmp_path, data):
    plan = toy_plan(data)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(FileError, match=r"holds 'thesis\.tex' and is not the folder of a study"):
        studies.reproduce(plan, tmp_path / "other")
    with pytest.raises(FileError, match="cannot be used: Not a directory"):
        studies.reproduce(plan, tmp_path / "other" / "thesis.tex")
    for use in (studies.rebuild, lambda folder: studies.Run(folder).plan):
        with pytest.raises(FileError, match="not the folder of a study"):
            use(tmp_path / "other")
    with pytest.raises(InputError, match="workers"):
        studies.reproduce(plan, tmp_path / "run", workers=0)
    assert not (tmp_path / "run").exists()


def test_a_plan_of_ones_own_is_not_overwritten(tmp_path, data):
    mine = "# with comments\n" + studies.to_toml(toy_plan(data))
    for text in (mine, "not = [TOML"):
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(FileError, match=r"plan\.toml that no study wrote"):
            studies.reproduce(toy_plan(data), tmp_path)
        assert (tmp_path / "plan.toml").read_text() == text


def test_a_run_that_got_no_further_than_its_plan_goes_on(tmp_path, data, undrawn):
    plan = toy_plan(data, methods=("ts",))
    (tmp_path / "plan.toml").write_text(studies.to_toml(plan), "utf-8")
    assert studies.reproduce(plan, tmp_path).records == 10


def test_nothing_is_written_if_the_plan_cannot_be_run(tmp_path, data):
    plan = toy_plan(data)
    methods = (*plan.methods, replace(plan.methods[3], label="x", settings={"distance": "far"}))
    for changes, words in (
        ({"methods": methods}, "distance must be"),
        ({"study": "synthetik"}, "synthetic"),
        ({"options": {"x": 1}}, "no option 'x'"),
        ({"calibration__images": 120}, "leaves none for the test"),
    ):
        changed = (
            toy_plan(data, **{"calibration__images": 60, **changes})
            if ("methods" not in changes)
            else replace(plan, **changes)
        )
        with pytest.raises(InputError, match=words):
            studies.reproduce(changed, tmp_path / "run")
    with pytest.raises(MissingData):
        studies.reproduce(toy_plan(data, data__images=("/none",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda _: "{", "is damaged: not JSON"),
        (lambda _: "[]", "is damaged"),
        (lambda told: json.dumps({**json.loads(told), "version": 99}), "newer shiftcal"),
        (lambda told: json.dumps({**json.loads(told), "format": "x"}), "of another kind"),
        (lambda told: told.replace('"sets"', '"set"'), "is damaged"),
        (lambda told: told.replace('"file"', '"fill"'), "is damaged"),
    ],
)
def test_a_damaged_index_is_named(finished, damage, words):
    file = finished / INDEX
    file.write_text(damage(file.read_text("utf-8")), "utf-8")
    with pytest.raises(FileError, match=words):
        Archive.open(finished)


def test_damaged_scores_are_made_again(finished, data, once, undrawn):
    file = finished / Archive.open(finished).entries["fog-5"].file
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(FileError, match=r"fog-5\.npz"):
        Archive.open(finished).scores("fog-5")
    done = studies.reproduce(toy_plan(data, methods=ALL), finished)
    assert done.scored == 120
    assert studies.Run(finished).records == studies.Run(once.folder).records


TWO = """
import sys
sys.path.insert(0, {support!r})
from pathlib import Path
from toy_study import toy_plan
from shiftcal import studies
from shiftcal.studies import run
from shiftcal.studies.catalog.base import Findings
run.report = lambda *_, **__: Findings({{}}, {{}})
print("ready", flush=True)
sys.stdin.readline()
done = studies.reproduce(toy_plan(Path({data!r})), {folder!r})
print(done.scored)
"""


@pytest.mark.slow
def test_two_runs_in_one_folder_at_the_same_time_end_the_same(tmp_path, data, once):
    from pathlib import Path

    support = str(Path(toy_study.__file__).parent)
    script = TWO.format(support=support, data=str(data), folder=str(tmp_path / "run"))
    both = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", script], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum(int(out) for out, _ in said) == 7 * 120
    records = studies.Run(tmp_path / "run").records
    wanted = [r for r in studies.Run(once.folder).records if r.method in PLAIN]
    drop = {"arrays": "", "key": ""}
    assert [replace(r, **drop) for r in records] == [replace(r, **drop) for r in wanted]


def test_scores_are_kept_in_bounded_memory(once, monkeypatch):
    from shiftcal.studies import archive as module

    archive = Archive.open(once.folder)
    one = archive.scores("clean")
    size = one.logits.nbytes + one.features.nbytes
    monkeypatch.setattr(module, "_KEPT_BYTES", 2 * size)
    archive.scores("fog-1")
    assert archive.scores("clean") is one
    archive.scores("fog-5")
    assert list(archive._kept) == ["clean", "fog-5"]
    assert np.array_equal(archive.scores("fog-1").labels, one.labels)
