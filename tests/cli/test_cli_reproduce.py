"""``shiftcal reproduce``: a plan in, tables and figures out."""

from __future__ import annotations

import csv
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hostile_files import trap
from tiny_study import EVALUATIONS, METHODS, PLAN, SEEDS, SETS, TARGETS, N, write_study

from shiftcal import studies
from shiftcal.cli.main import run as program
from shiftcal.studies import run as reporting

# Named in full: the tests differ in what they are run from.
COMMAND = "reproduce mine.toml --data . --workers 1"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pictures are drawn where a test asks for them."""
    monkeypatch.setattr(reporting, "write_figure", lambda *_: None)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a study that was run once, with figures."""
    folder = tmp_path_factory.mktemp("finished")
    write_study(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("SHIFTCAL_CACHE", raising=False)
        assert program(COMMAND.split()) == 0
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study that was not run yet."""
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def done(finished, monkeypatch, tmp_path):
    """A copy of the finished study in the place where it was made: scores are known by it."""
    kept = tmp_path / "kept"
    shutil.copytree(finished, kept)
    monkeypatch.chdir(finished)
    yield finished
    shutil.rmtree(finished)
    shutil.copytree(kept, finished)


def contents(folder, pattern="**/*"):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.glob(pattern))
        if file.is_file()
    }


def rows(run):
    with (run / "records.csv").open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize(
    "spec",
    [
        "python:evil:net?key=a&raw=true",
        "torch:evil:net",
        "torchscript:net.pt",
        "export:net.pt2",
        "sklearn:net.skops?trusted=evil.Net",
        "hf:somebody/net",
        "timm:resnet50",
    ],
)
def test_a_plan_never_loads_a_model_that_runs_code_or_is_downloaded(folder, spec, refused):
    (folder / "evil.py").write_text("open('mark', 'w')\ndef net(x): return x.mean((1, 2))\n")
    for name in ("net.pt", "net.pt2", "net.skops"):
        (folder / name).write_bytes(trap(folder / "mark"))
    # The first is not there, so that the second would be next.
    text = PLAN.replace('["net.onnx"]', f'["none.onnx", "{spec}"]')
    (folder / "mine.toml").write_text(text, "utf-8")
    message = refused(COMMAND)
    assert f"mine.toml names the model {spec!r}, and loading it may run code" in message
    assert f"--model {spec!r}" in message
    assert not (folder / "mark").exists()
    assert not (folder / "runs").exists()


def test_the_model_of_a_plan_is_loaded_if_it_is_named_again(folder, shiftcal):
    spec = "python:good:net?key=a&raw=true"
    (folder / "good.py").write_text("def net(x): return x.mean((1, 2)) / 255\n")
    (folder / "mine.toml").write_text(PLAN.replace("net.onnx", spec), "utf-8")
    done = shiftcal(COMMAND, "--model", spec)
    assert done.status == 0, done.err
    # Tables are made again from scores, without the model.
    (folder / "good.py").unlink()
    assert shiftcal("reproduce runs/mine --workers 1").status == 0


def test_the_plans_of_this_package_are_trusted():
    for name in studies.names():
        text, _ = studies.plan_text(name)
        assert not studies.read_plan(text, data="x").stored
        assert studies.read_plan(text.replace('study = "', 'study= "'), data="x").stored


def test_a_plan_of_ones_own_is_run(folder, shiftcal):
    done = shiftcal(COMMAND)
    assert done.status == 0, done.err
    run = folder / "runs" / "mine"
    assert done.out.startswith("Mean ECE over corruptions\n")
    lines = done.out.splitlines()
    assert f"scored     {N * SETS} images in this run" in lines
    assert f"evaluated  {EVALUATIONS} of {EVALUATIONS} in this run" in lines
    assert lines[-1] == "report     runs/mine/report.md"
    stages = [word.split()[0] for word in lines[-2].removeprefix("seconds").split(",")]
    assert stages == ["opening", "scoring", "evaluation", "report"]
    assert (run / "report.md").read_text("utf-8").startswith("# ")


def test_the_table_that_is_printed_has_the_means_of_the_records(done, shiftcal):
    printed = shiftcal(COMMAND).out.splitlines()
    start = printed.index("Mean ECE over corruptions") + 1
    header = printed[start].split("  ")
    assert header[0] == "Method"
    records = rows(done / "runs" / "mine")
    for label in ("Vanilla", "TS", "STS", "SAC", "Oracle"):
        (line,) = (x for x in printed[start:] if x.startswith(f"{label} "))
        clean = [float(r["ece"]) for r in records if (r["label"], r["target"]) == (label, "clean")]
        assert len(clean) == SEEDS
        assert line.split()[1] == f"{100 * np.mean(clean):.2f}"


def test_pictures_and_tables_are_there_in_every_format(finished):
    run = finished / "runs" / "mine"
    for name in ("mean-ece", "full", "temperatures", "chosen"):
        for kind in ("md", "csv", "tex"):
            assert (run / "tables" / f"{name}.{kind}").stat().st_size
    for name in ("ece-means", "ece-boxes"):
        for kind in ("png", "svg", "json"):
            assert (run / "figures" / f"{name}.{kind}").stat().st_size


def test_json_says_the_same(folder, shiftcal_json):
    told = shiftcal_json(COMMAND, "-o there")
    assert told["command"] == "reproduce"
    assert (told["study"], told["folder"]) == ("synthetic", "there")
    assert told["report"] == str(Path("there/report.md"))
    assert Path(told["tables"][0]).name == "mean-ece.csv"
    assert [Path(file).name for file in told["figures"]] == ["ece-means.png", "ece-boxes.png"]
    assert all(Path(file).is_file() for file in told["tables"])
    assert told["images_scored"] == N * SETS
    assert told["evaluated"] == told["records"] == EVALUATIONS
    assert (told["left_out"], told["warnings"]) == ([], [])
    assert set(told["seconds"]) == {"opening", "scoring", "evaluation", "report"}


def test_the_same_command_again_has_nothing_to_do(done, shiftcal_json):
    before = contents(done / "runs" / "mine")
    told = shiftcal_json(COMMAND)
    assert (told["images_scored"], told["evaluated"], told["records"]) == (0, 0, EVALUATIONS)
    after = contents(done / "runs" / "mine")
    assert {name for name in before if before[name] != after[name]} == {"run.json"}


@pytest.mark.parametrize(
    ("old", "new", "scored", "evaluated", "records"),
    [
        ('"sac",', '"sac", { name = "sac", label = "KS", distance = "ks" },', 0, 10, 60),
        ("seeds = [0, 1]", "seeds = [0, 1, 2]", 0, EVALUATIONS // 2, 75),
        ("seeds = [0, 1]", "seeds = [1]", 0, 0, 25),
        ("bins = 4", "bins = 3", 0, EVALUATIONS, EVALUATIONS),
        ("images = 45", "images = 60", 0, EVALUATIONS, EVALUATIONS),
        ('label = "Oracle"', 'label = "Labels"', 0, 0, EVALUATIONS),
        ("about = ", "about = 'Else.' # ", 0, 0, EVALUATIONS),
        # Of the methods only those that learn from surrogate sets ask for the new one.
        ("severities = [1, 3]", "severities = [1, 3, 5]", N, 2 * SEEDS * TARGETS, EVALUATIONS),
        ('"brightness"]', '"brightness", "saturate"]', 2 * N, 2 * SEEDS * METHODS, 70),
        ("[0, 2, 5]", "[0, 2]", 0, 0, 30),
        # The corruptions here draw nothing: scored once more, they have the digests they had.
        ("severities = [0, 2, 5]", "severities = [0, 2, 5]\nseed = 1", SETS * N, 0, EVALUATIONS),
        ("fetch", "limit = 60\nfetch", SETS * 60, EVALUATIONS, EVALUATIONS),
    ],
)
def test_a_changed_plan_redoes_only_what_it_must(
    done, shiftcal_json, old, new, scored, evaluated, records
):
    assert PLAN.count(old) == 1
    (done / "mine.toml").write_text(PLAN.replace(old, new), "utf-8")
    told = shiftcal_json(COMMAND)
    found = (told["images_scored"], told["evaluated"], told["records"])
    assert found == (scored, evaluated, records)


def test_a_model_can_stand_for_that_of_the_plan(done, shiftcal_json):
    (done / "net.onnx").rename(done / "other.onnx")
    told = shiftcal_json(COMMAND, "--model other.onnx")
    # The file is the same: scores are known by what is in it, not by its name.
    assert (told["images_scored"], told["evaluated"]) == (0, 0)
    assert studies.Run(done / "runs" / "mine").plan.model.spec == ("other.onnx",)
    told = shiftcal_json(COMMAND, "--model other.onnx?std=0.25")
    assert (told["images_scored"], told["evaluated"]) == (N * SETS, EVALUATIONS)


def test_what_data_stands_for_is_kept_from_the_root(finished):
    text = (finished / "runs" / "mine" / "plan.toml").read_text("utf-8")
    (images,) = tomllib.loads(text)["data"]["images"]
    assert Path(images).is_absolute()
    assert Path(images).samefile(finished / "images.npz")


def test_any_number_can_be_computed_again_from_the_folder_alone(done):
    for file in ("net.onnx", "images.npz", "mine.toml"):
        (done / file).unlink()
    run = studies.Run(done / "runs" / "mine")
    for record in run.records[::7]:
        assert run.recompute(record) == record


def test_a_run_is_rebuilt_without_model_and_images(done, shiftcal_json):
    for file in ("net.onnx", "images.npz", "mine.toml"):
        (done / file).unlink()
    run = done / "runs" / "mine"
    before = contents(run)
    for name in ("tables", "figures", "splits"):
        shutil.rmtree(run / name)
    for name in ("records.csv", "report.md"):
        (run / name).unlink()
    told = shiftcal_json("reproduce runs/mine --workers 1")
    assert (told["study"], told["folder"]) == ("synthetic", "runs/mine")
    assert (told["images_scored"], told["evaluated"]) == (0, 0)
    after = contents(run)
    for name, content in before.items():
        if not name.startswith("figures/") and name != "run.json":
            assert after[name] == content, name


def test_a_run_is_rebuilt_from_its_scores_alone(done, shiftcal):
    run = done / "runs" / "mine"
    before = (run / "records.csv").read_bytes()
    shutil.rmtree(run / "evaluated")
    told = shiftcal("reproduce runs/mine --workers 1")
    assert told.status == 0, told.err
    assert f"evaluated  {EVALUATIONS} of {EVALUATIONS} in this run" in told.out
    assert "note: " not in told.err
    assert (run / "records.csv").read_bytes() == before


@pytest.mark.slow
def test_figures_are_rebuilt_with_the_same_data(done, shiftcal, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(done)
    figures = done / "runs" / "mine" / "figures"
    before = contents(figures, "*.json")
    shutil.rmtree(figures)
    assert shiftcal("reproduce runs/mine --workers 1").status == 0
    assert contents(figures, "*.json") == before
    assert len(before) == 2


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("--data .", "--data"),
        ("-o other", "-o"),
        ("--model net.onnx", "--model"),
        ("--cache c --skip-missing", "--cache, --skip-missing"),
    ],
)
def test_what_has_no_say_when_a_run_is_rebuilt_is_refused(done, refused, option, named):
    message = refused("reproduce runs/mine", option)
    assert f"{named} must be left out: runs/mine is the folder of a run" in message
    assert "shiftcal reproduce runs/mine/plan.toml -o runs/mine" in message


def test_the_plan_of_a_run_goes_on_in_its_folder(done, shiftcal_json):
    run = done / "runs" / "mine"
    text = (run / "plan.toml").read_text("utf-8")
    (run / "plan.toml").write_text(text.replace("[0, 1]", "[0, 1, 2]"), "utf-8")
    told = shiftcal_json("reproduce runs/mine/plan.toml -o runs/mine --workers 1")
    assert (told["images_scored"], told["evaluated"]) == (0, TARGETS * METHODS)


def test_a_cache_is_shared_between_studies(folder, shiftcal_json):
    shiftcal_json(COMMAND, "--cache cache -o one")
    told = shiftcal_json(COMMAND, "--cache cache -o two")
    assert (told["images_scored"], told["evaluated"]) == (0, EVALUATIONS)
    assert contents(folder / "one" / "scores") == contents(folder / "two" / "scores")


@pytest.mark.slow
def test_two_workers_find_the_same(finished, done, shiftcal):
    before = contents(done / "runs" / "mine" / "scores"), rows(done / "runs" / "mine")
    told = shiftcal("reproduce mine.toml --data . --workers 2 -o two")
    assert told.status == 0, told.err
    assert (contents(done / "two" / "scores"), rows(done / "two")) == before
