"""Files of a run that are not what it wrote: swapped, cut, damaged, of another plan."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from toy_study import ALL, toy_plan, write_data

from shiftcal import studies
from shiftcal.errors import FileError
from shiftcal.studies import run
from shiftcal.studies.archive import INDEX, Archive
from shiftcal.studies.catalog.base import Findings
from shiftcal.studies.plan.plan import NaturalSet
from shiftcal.studies.stages.kept import read_outcomes

COMMAND = r"shiftcal reproduce \S*plan\.toml -o \S*run"


@pytest.fixture
def undrawn(monkeypatch):
    """No tables and figures, which take seconds."""
    monkeypatch.setattr(run, "report", lambda *_, **__: Findings({}, {}))


@pytest.fixture
def own(data):
    """A plan with a natural target, whose scores are in a file beside the bank."""
    labels = str(data / "natural-labels.npy")
    natural = NaturalSet("own", "Own", (str(data / "natural.npy"),), labels=labels)
    return toy_plan(data, methods=("ts", "sac"), study="natural", shifts__sets=(natural,))


def file_of(folder, name):
    return folder / Archive.open(folder).entries[name].file


def swap(folder, one, other):
    a, b = file_of(folder, one), file_of(folder, other)
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(content)


def test_swapped_scores_are_not_believed(finished, data, once, undrawn):
    swap(finished, "fog-1", "fog-5")
    with pytest.raises(FileError, match=rf"fog-1\.npz is damaged or was replaced.*{COMMAND}"):
        Archive.open(finished).scores("fog-1")
    shutil.rmtree(finished / "evaluated")
    with pytest.raises(FileError, match=rf"was replaced.*{COMMAND}"):
        studies.rebuild(finished)
    done = studies.reproduce(toy_plan(data, methods=ALL), finished)
    assert done.scored == 2 * 120
    assert studies.Run(finished).records == studies.Run(once.folder).records


def test_outcomes_of_swapped_scores_are_never_used_again(finished, data, once, undrawn):
    swap(finished, "fog-1", "fog-5")
    file = finished / INDEX
    told = json.loads(file.read_text("utf-8"))
    one, other = (told["sets"][name] for name in ("fog-1", "fog-5"))
    one["sha256"], other["sha256"] = other["sha256"], one["sha256"]
    file.write_text(json.dumps(told), "utf-8")
    shutil.rmtree(finished / "evaluated")
    studies.rebuild(finished)  # who changes the checksums as well is believed, for the time being
    assert studies.Run(finished).records != studies.Run(once.folder).records
    studies.reproduce(toy_plan(data, methods=ALL), finished)
    assert studies.Run(finished).records == studies.Run(once.folder).records


def test_changed_scores_of_a_natural_target_are_made_again(tmp_path, own, undrawn):
    folder = tmp_path / "run"
    studies.reproduce(own, folder)
    before, file = studies.Run(folder).records, file_of(folder, "own")
    with np.load(file) as opened:
        arrays = dict(opened)
    (name,) = [each for each in arrays if arrays[each].ndim == 2 and arrays[each].shape[1] == 3]
    np.savez(file, **{**arrays, name: arrays[name][::-1]})
    shutil.rmtree(folder / "evaluated")
    with pytest.raises(FileError, match=rf"own\.npz is damaged or was replaced.*{COMMAND}"):
        studies.rebuild(folder)
    for plan in (replace(own, bins=4), own):
        done = studies.reproduce(plan, folder)
        assert done.scored == (45 if plan is not own else 0)
    assert studies.Run(folder).records == before


def test_a_file_is_checked_once(once, monkeypatch):
    from shiftcal.studies import archive as module

    seen = []
    real = module.digest_of
    monkeypatch.setattr(module, "digest_of", lambda file: seen.append(file.name) or real(file))
    monkeypatch.setattr(module, "_KEPT_BYTES", 0)
    archive = Archive.open(once.folder)
    for _ in range(2):
        archive.scores("fog-1")
        archive.train_features()
    assert seen == ["fog-1.npz", "train.npz"]


@pytest.mark.parametrize("damage", ["gone", "cut", "unchecked"])
def test_scores_that_cannot_be_read_are_named_with_the_command_that_mends_them(finished, damage):
    file = file_of(finished, "fog-5")
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-100])
    if damage == "unchecked":  # as an index of scores made by hand
        told = json.loads((finished / INDEX).read_text("utf-8"))
        del told["sets"]["fog-5"]["sha256"]
        (finished / INDEX).write_text(json.dumps(told), "utf-8")
    with pytest.raises(FileError, match=rf"fog-5\.npz.*{COMMAND}") as caught:
        Archive.open(finished).scores("fog-5")
    assert "Did you mean" not in str(caught.value)


def test_paths_with_spaces_are_quoted_in_the_command(finished, tmp_path):
    folder = finished.rename(tmp_path / "my run")
    file_of(folder, "clean").unlink()
    with pytest.raises(FileError, match=r"reproduce '\S*my run/plan\.toml' -o '\S*my run'$"):
        studies.rebuild(folder)


def test_a_plan_that_is_no_text_is_refused(finished):
    (finished / "plan.toml").write_bytes(b"study = '\xff\xfe'")
    for use in (studies.rebuild, lambda folder: studies.Run(folder).plan):
        with pytest.raises(FileError, match=r"plan\.toml is damaged: not text in UTF-8"):
            use(finished)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_outcomes_that_are_no_numbers_are_evaluated_again(finished, once, undrawn, number):
    file = finished / "evaluated" / "split-0" / "fog-1.json"
    told = json.loads(file.read_text("utf-8"))
    told[next(iter(told))]["ece"] = float(number)
    file.write_text(json.dumps(told), "utf-8")
    assert number in file.read_text("utf-8")
    assert len(read_outcomes(finished)) == 69
    assert studies.rebuild(finished).evaluated == 1
    assert studies.Run(finished).records == studies.Run(once.folder).records


def test_records_that_are_cut_anywhere_are_refused(finished):
    file = finished / "records.csv"
    text = file.read_text("utf-8")
    last = text.rstrip("\n").rindex("\n") + 1
    for end in (0, len(text) - 1, len(text) - 5, last + 30, last):
        file.write_text(text[:end], "utf-8")
        with pytest.raises(FileError, match=r"records\.csv"):
            _ = studies.Run(finished).records
    file.write_text(text[: last + 30] + "\n", "utf-8")
    with pytest.raises(FileError, match="a row has fewer fields"):
        _ = studies.Run(finished).records
    file.write_text(text[:last], "utf-8")
    with pytest.raises(FileError, match=r"has 69 rows, and run\.json beside it says 70"):
        _ = studies.Run(finished).records
    (finished / "run.json").unlink()
    assert len(studies.Run(finished).records) == 69


@pytest.mark.parametrize("stage", ["score_sets", "evaluate", "report"])
def test_a_run_stops_if_another_plan_takes_its_folder(finished, data, monkeypatch, undrawn, stage):
    real, text = getattr(run, stage), studies.to_toml(toy_plan(data, bins=3))

    def overtaken(*args, **options):
        if stage != "score_sets":
            found = real(*args, **options)
            (finished / "plan.toml").write_text(text, "utf-8")
            return found
        (finished / "plan.toml").write_text(text, "utf-8")
        return real(*args, **options)

    monkeypatch.setattr(run, stage, overtaken)
    plan = toy_plan(data, methods=ALL, seeds=(7,))
    with pytest.raises(FileError, match="another run with another plan is using this folder"):
        studies.reproduce(plan, finished)
    assert not (finished / "run.json").exists()
    assert (finished / "records.csv").exists() == (stage == "report")
    assert (finished / INDEX).exists() == (stage != "score_sets")
    assert (finished / "plan.toml").read_text("utf-8") == text


def test_a_run_that_lost_its_plan_is_gone_on_with(finished, data, undrawn):
    (finished / "plan.toml").unlink()
    with pytest.raises(FileError, match=r"scores of a study and no plan.*reproduce PLAN -o \S*run"):
        studies.rebuild(finished)
    done = studies.reproduce(toy_plan(data, methods=ALL), finished)
    assert (done.scored, done.evaluated, done.records) == (0, 0, 70)
    (finished / "plan.toml").unlink()
    (finished / INDEX).write_text("{}")
    with pytest.raises(FileError, match="is not the folder of a study"):
        studies.reproduce(toy_plan(data), finished)


def test_a_changed_plan_that_was_interrupted_leaves_nothing_of_the_old_one(
    finished, data, monkeypatch
):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    (finished / "tables" / "mine.csv").write_text("mine")
    (finished / "splits" / "mine.npz").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(run, "evaluate", stopped)
        with pytest.raises(KeyboardInterrupt):
            studies.reproduce(toy_plan(data, methods=ALL, bins=4, seeds=(1,)), finished)
    there = {str(each.relative_to(finished)) for each in finished.rglob("*") if each.is_file()}
    left = {name for name in there if not name.startswith(("scores", "evaluated"))}
    assert left == {"plan.toml", "tables/mine.csv", "splits/mine.npz", "splits/seed-1.npz"}
    monkeypatch.setattr(run, "report", lambda *_, **__: Findings({}, {}))
    assert studies.reproduce(toy_plan(data, methods=ALL), finished).evaluated == 0


def test_what_was_scored_is_still_known_after_a_change(finished, data, undrawn):
    studies.reproduce(toy_plan(data, methods=ALL, bins=4), finished)
    assert json.loads((finished / "run.json").read_text("utf-8"))["images_scored"] == 930


def test_splits_of_seeds_that_were_dropped_are_gone(finished, undrawn):
    plan = studies.Run(finished).plan
    (finished / "plan.toml").write_text(studies.to_toml(replace(plan, seeds=(1,))), "utf-8")
    studies.rebuild(finished)
    assert [file.name for file in (finished / "splits").iterdir()] == ["seed-1.npz"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": "shiftcal-bank", "version": 1}', '{"format": "x"}']
)
def test_a_damaged_bank_is_named_with_what_to_do(finished, data, undrawn, text):
    bank = file_of(finished, "clean").parent
    (bank / "bank.json").write_text(text)
    plan = toy_plan(data, methods=ALL)
    words = rf"bank\.json is damaged.*Remove the folder \S*{bank.name}, and run the same command"
    for announce in (None, lambda _: None):
        with pytest.raises(FileError, match=words):
            studies.reproduce(plan, finished, announce=announce)
    shutil.rmtree(bank)
    assert studies.reproduce(plan, finished).scored == 7 * 120


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "3",
        '{"format": "shiftcal-study-scores", "version": "x"}',
        '{"format": "shiftcal-study-scores", "version": 1, "train": 3, "sets": {}}',
        '{"format": "shiftcal-study-scores", "version": 1, "model": {}, "train": null, '
        '"sets": {"clean": {"file": 3, "key": null}}}',
    ],
)
def test_a_damaged_index_is_told_in_words(finished, text):
    (finished / INDEX).write_text(text)
    with pytest.raises(FileError, match=rf"not the list of scores.*{COMMAND}") as caught:
        Archive.open(finished)
    assert not any(word in str(caught.value) for word in ("Error", "Entry", "None", "'"))


@pytest.mark.parametrize("what", ["images", "labels"])
def test_images_that_changed_in_place_are_told_in_terms_of_the_run(tmp_path, undrawn, what):
    data = write_data(tmp_path / "data")
    plan = toy_plan(data, methods=("ts",), seeds=(0,))
    studies.reproduce(plan, tmp_path / "run")
    file = data / ("test.npy" if what == "images" else "test-labels.npy")
    np.save(file, np.load(file)[::-1])
    words = f"the {what} of this run have changed since it was scored.*Name a new folder"
    with pytest.raises(FileError, match=words):
        studies.reproduce(plan, tmp_path / "run")
