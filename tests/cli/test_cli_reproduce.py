"""``shiftcal reproduce``: a plan in, tables and figures out."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bank_process import wait_for
from hostile_files import trap
from tiny_study import EVALUATIONS, METHODS, PLAN, SEEDS, SETS, TARGETS, N, write_study

from shiftcal import studies
from shiftcal.cli.main import run as program
from shiftcal.studies import run as reporting
from shiftcal.studies.plan import BUILT_IN

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


def contents(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


# --- running ------------------------------------------------------------------------------------


def test_a_plan_of_ones_own_is_run(folder, shiftcal):
    done = shiftcal(COMMAND)
    assert done.status == 0, done.err
    run, lines = folder / "runs" / "mine", done.out.splitlines()
    assert lines[0] == "Mean ECE over corruptions"
    assert f"images scored  {N * SETS:,}" in lines
    assert f"evaluated      {EVALUATIONS}" in lines
    assert lines[-1] == "report         runs/mine/report.md"
    assert (run / "report.md").read_text("utf-8").startswith("# ")
    with (run / "records.csv").open(encoding="utf-8", newline="") as opened:
        records = list(csv.DictReader(opened))
    for label in ("Vanilla", "TS", "STS", "SAC", "Oracle"):
        (line,) = (x for x in lines if x.startswith(f"{label} "))
        clean = [float(r["ece"]) for r in records if (r["label"], r["target"]) == (label, "clean")]
        assert len(clean) == SEEDS
        assert line.split()[1] == f"{100 * np.mean(clean):.2f}"


def test_json_says_the_same(folder, shiftcal_json):
    found = shiftcal_json(COMMAND, "-o there")
    assert (found["command"], found["study"], found["folder"]) == (
        "reproduce",
        "synthetic",
        "there",
    )
    assert Path(found["report"]) == Path("there/report.md")
    assert Path(found["tables"][0]).name == "mean-ece.csv"
    assert [Path(file).name for file in found["figures"]] == ["ece-means.png", "ece-boxes.png"]
    assert all(Path(file).is_file() for file in found["tables"])
    assert found["images_scored"] == N * SETS
    assert found["evaluated"] == found["records"] == EVALUATIONS
    assert (found["left_out"], found["warnings"]) == ([], [])
    assert set(found["seconds"]) == {"opening", "scoring", "evaluation", "report"}


def test_a_model_can_stand_for_that_of_the_plan(done, shiftcal_json):
    (done / "net.onnx").rename(done / "other.onnx")
    found = shiftcal_json(COMMAND, "--model other.onnx")
    # The file is the same: scores are known by what is in it, not by its name.
    assert (found["images_scored"], found["evaluated"]) == (0, 0)
    assert studies.Run(done / "runs" / "mine").plan.model.spec == ("other.onnx",)
    found = shiftcal_json(COMMAND, "--model other.onnx?std=0.25")
    assert (found["images_scored"], found["evaluated"]) == (N * SETS, EVALUATIONS)


def test_a_run_is_rebuilt_without_model_and_images(done, shiftcal_json):
    for file in ("net.onnx", "images.npz", "mine.toml"):
        (done / file).unlink()
    run = done / "runs" / "mine"
    before = contents(run)
    for name in ("tables", "figures", "evaluated"):
        shutil.rmtree(run / name)
    for name in ("records.csv", "report.md"):
        (run / name).unlink()
    found = shiftcal_json("reproduce runs/mine --workers 1")
    assert (found["study"], found["folder"]) == ("synthetic", "runs/mine")
    assert (found["images_scored"], found["evaluated"]) == (0, EVALUATIONS)
    after = contents(run)
    for name, content in before.items():
        if not name.startswith("figures/") and name != "run.json":
            assert after[name] == content, name


def test_the_plan_of_a_run_resumes_in_its_folder(done, shiftcal_json):
    run = done / "runs" / "mine"
    text = (run / "plan.toml").read_text("utf-8")
    (run / "plan.toml").write_text(text.replace("[0, 1]", "[0, 1, 2]"), "utf-8")
    found = shiftcal_json("reproduce runs/mine/plan.toml -o runs/mine --workers 1")
    assert (found["images_scored"], found["evaluated"]) == (0, TARGETS * METHODS)


def test_a_cache_is_shared_between_studies(folder, shiftcal_json):
    shiftcal_json(COMMAND, "--cache cache -o one")
    found = shiftcal_json(COMMAND, "--cache cache -o two")
    assert (found["images_scored"], found["evaluated"]) == (0, EVALUATIONS)
    one, two = (contents(folder / name / "scores") for name in ("one", "two"))
    assert one == two


# --- stopped and resumed --------------------------------------------------------------------------

# A function whose every batch takes a while if the file `slow` is there.
NET = """\
import pathlib, time
import numpy as np

def logits(batch):
    if pathlib.Path("slow").exists():
        time.sleep(0.05)
    return batch.astype(np.float32).mean(axis=(1, 2)) / 64
"""


def begin(folder, *words):
    """The command, as a process of its own in a group of its own, as a terminal has it."""
    return subprocess.Popen(
        [sys.executable, "-m", "shiftcal", "reproduce", "mine.toml", "--data", ".", "-o", "run",
         "--model", "python:net:logits?key=net-1&raw=true", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SHIFTCAL_CACHE": ""},
        start_new_session=True,
    )  # fmt: skip


def shown(run):
    """Everything that people look at, and the scores."""
    kinds = ("tables", "figures")
    names = ("records.csv", "report.md", "report.json", "index.json")
    return {
        str(file.relative_to(run)): file.read_bytes()
        for file in run.rglob("*")
        if file.suffix != ".tmp" and (file.parent.name in kinds or file.name in names)
    }


def stopped_and_resumed(folder, pattern, how, workers="1"):
    """Stop the command when a file is there, run it again, and compare with a run undisturbed."""
    (folder / "net.py").write_text(NET)
    (folder / "slow").touch()
    process = begin(folder, "--workers", workers)
    wait_for(lambda: list((folder / "run").glob(pattern)), process)
    os.killpg(process.pid, how)
    out, err = process.communicate(timeout=300)
    assert out == ""
    assert not (folder / "run" / "run.json").exists()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "note: the same command resumes where this one stopped." in err
        assert "Traceback" not in err
        assert not list((folder / "run").rglob("*.tmp"))
    (folder / "slow").unlink()
    out, err = begin(folder, "--workers", workers).communicate(timeout=300)
    assert "report         run" in out, err
    resumed = shown(folder / "run")
    (folder / "run").rename(folder / "first")
    out, err = begin(folder, "--workers", "1").communicate(timeout=300)
    assert "report         run" in out, err
    assert shown(folder / "run") == resumed
    assert len(resumed) > 15


def test_a_killed_run_resumes_to_the_same_bytes(folder):
    stopped_and_resumed(folder, "evaluated/*.json", signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize(
    ("pattern", "workers"),
    [
        ("scores/*/*.npz", "1"),
        ("evaluated/*.json", "2"),
        ("tables/*.csv", "1"),
        ("figures/*.png", "1"),
    ],
)
def test_a_run_that_was_stopped_resumes_to_the_same_bytes(folder, pattern, workers, how):
    stopped_and_resumed(folder, pattern, how, workers)


# --- plans ----------------------------------------------------------------------------------------


def test_the_list_has_every_study_with_a_line(shiftcal, shiftcal_json):
    lines = shiftcal("reproduce --list").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == studies.names()
    found = shiftcal_json("reproduce --list")["studies"]
    assert [each["name"] for each in found] == studies.names()
    assert all(each["about"].endswith(".") for each in found)


def test_plans_are_shown_to_the_letter(folder, shiftcal, shiftcal_json):
    for name in studies.names():
        text = (BUILT_IN / f"{name}.toml").read_text("utf-8")
        assert shiftcal(f"reproduce {name} --show-plan").out == text
        assert not studies.read_plan(text, data="x").stored
        assert studies.read_plan(text.replace('study = "', 'study= "'), data="x").stored
    assert shiftcal_json("reproduce mine.toml --show-plan")["plan"] == PLAN
    (folder / "run").mkdir()
    (folder / "run" / "plan.toml").write_text("a = 1\n")
    assert shiftcal("reproduce run --show-plan").out == "a = 1\n"


def test_lists_and_plans_come_without_anything_heavy():
    heavy = ("sklearn", "torch", "matplotlib", "PIL", "cv2", "onnxruntime")
    code = (
        "import sys\n"
        "from shiftcal.cli.main import run\n"
        "for words in (['--list'], ['peek', '--show-plan']):\n"
        "    assert run(['reproduce', *words]) == 0\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


# --- what is rejected -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        "python:evil:net?key=a&raw=true",
        "torch:evil:net",
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reproduce", "STUDY must be the name of a study, a plan or the folder of a run."),
        ("reproduce syntetic", "no study is called 'syntetic', and no file. Did you mean 'syn"),
        ("reproduce gone.toml", "gone.toml could not be read: No such file or directory."),
        ("reproduce images.npz", "images.npz could not be read: it is not UTF-8 text."),
        ("reproduce synthetic", "the plan 'synthetic' needs {data}"),
        (f"{COMMAND} --engine lcoal", "lcoal"),
        (f"{COMMAND} --address auto", "address must be left out for the local engine"),
        (f"{COMMAND} --workers 0", "workers"),
        (f"{COMMAND} --model magic:wand", "magic"),
        (f"{COMMAND} -o taken", "taken holds 'something' and is not the folder of a study."),
        (f"{COMMAND} -o net.onnx", "net.onnx/evaluated could not be made: Not a directory."),
        ("reproduce plan.toml --data else -o .", "holds the plan itself, plan.toml, which the run"),
        ("reproduce classes.toml --data . -o classes/run", "the folder that is read"),
        (f"reproduce {COMMAND.split()[1]}", "mine.toml needs {data}"),
    ],
)
def test_what_cannot_be_used_is_rejected_and_leaves_nothing(folder, refused, words, message):
    (folder / "taken").mkdir()
    (folder / "taken" / "something").touch()
    (folder / "plan.toml").write_text(PLAN, "utf-8")
    (folder / "classes" / "red").mkdir(parents=True)
    text = PLAN.replace("{data}/images.npz", "folder:{data}/classes")
    (folder / "classes.toml").write_text(text, "utf-8")
    assert message in refused(words)
    assert not (folder / "runs").exists()
    assert (folder / "plan.toml").read_text("utf-8") == PLAN


def test_what_has_no_say_when_a_run_is_rebuilt_is_rejected(done, refused):
    message = refused("reproduce runs/mine --data . -o other --model net.onnx --skip-missing")
    assert "runs/mine is the folder of a run" in message
    assert "shiftcal reproduce runs/mine/plan.toml -o runs/mine" in message


def test_without_the_model_nothing_is_skipped(folder, shiftcal):
    (folder / "net.onnx").unlink()
    done = shiftcal(COMMAND, "--skip-missing")
    assert done.status == 2
    assert "--skip-missing" not in done.err
