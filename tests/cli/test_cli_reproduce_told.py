"""``shiftcal reproduce``: lists, plans, estimates, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tiny_study import PLAN, SETS, N, colours, write_study

from shiftcal import studies
from shiftcal.studies import run as reporting
from shiftcal.studies.plan import BUILT_IN

COMMAND = "reproduce mine.toml --data . --workers 1"
NATURAL = """
[[shifts.sets]]
name = "painted"
title = "Painted by hand"
images = ["{data}/painted.npz", "{data}/other.npz"]
fetch = "Painted: buy a brush, keep it in {data}"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A study that was not run yet, and is quick."""
    monkeypatch.setattr(reporting, "write_figure", lambda *_: None)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def replace_in_plan(folder, old, new):
    assert PLAN.count(old) == 1
    (folder / "mine.toml").write_text(PLAN.replace(old, new), "utf-8")


def test_the_list_has_every_study_with_a_line(shiftcal, shiftcal_json):
    lines = shiftcal("reproduce --list").out.splitlines()
    assert lines[0].split() == ["study", "what", "it", "does"]
    assert [line.split()[0] for line in lines[1:]] == studies.names()
    told = shiftcal_json("reproduce --list")
    assert [each["name"] for each in told["studies"]] == studies.names()
    assert all(each["about"].endswith(".") for each in told["studies"])


@pytest.mark.parametrize("name", studies.names())
def test_a_plan_is_shown_to_the_letter(shiftcal, name):
    assert shiftcal(f"reproduce {name} --show-plan").out == (BUILT_IN / f"{name}.toml").read_text(
        "utf-8"
    )


def test_a_plan_of_ones_own_and_that_of_a_run_are_shown_too(folder, shiftcal, shiftcal_json):
    assert shiftcal("reproduce mine.toml --show-plan").out == PLAN
    assert shiftcal_json("reproduce mine.toml --show-plan")["plan"] == PLAN
    (folder / "run").mkdir()
    (folder / "run" / "plan.toml").write_text("a = 1\n")
    assert shiftcal("reproduce run --show-plan").out == "a = 1\n"


def test_without_the_model_nothing_is_skipped(folder, shiftcal):
    (folder / "net.onnx").unlink()
    done = shiftcal(COMMAND, "--skip-missing")
    assert done.status == 2
    assert "--skip-missing" not in done.err


def test_a_natural_set_that_is_there_is_evaluated_on(folder, shiftcal_json):
    (folder / "mine.toml").write_text(PLAN + NATURAL, "utf-8")
    images, labels = colours(30, seed=5)
    np.savez(folder / "other.npz", images=images, labels=labels)
    told = shiftcal_json(COMMAND)
    assert told["images_scored"] == N * SETS + 30
    assert {r.n for r in studies.Run(told["folder"]).records if r.target == "painted"} == {30}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reproduce", "STUDY must be the name of a study, a plan or the folder of a run."),
        ("reproduce syntetic", "no study is called 'syntetic', and no file. Did you mean 'syn"),
        ("reproduce gone.toml", "gone.toml could not be read: No such file or directory."),
        ("reproduce gone.toml --show-plan", "gone.toml could not be read"),
        ("reproduce images.npz", "images.npz could not be read: it is not UTF-8 text."),
        (
            "reproduce synthetic",
            "the plan 'synthetic' needs {data}",
        ),
        ("reproduce mine.toml", "mine.toml needs {data}"),
        (f"{COMMAND} --engine lcoal", "lcoal"),
        (f"{COMMAND} --address auto", "address must be left out for the local engine"),
        (f"{COMMAND} --workers 0", "workers"),
        (f"{COMMAND} --model magic:wand", "magic"),
        (f"{COMMAND} -o taken", "taken holds 'something' and is not the folder of a study."),
        (f"{COMMAND} -o net.onnx", "net.onnx cannot be used: Not a directory."),
    ],
)
def test_what_cannot_be_used_is_refused_and_leaves_nothing(folder, refused, words, message):
    (folder / "taken").mkdir()
    (folder / "taken" / "something").touch()
    assert message in refused(words)
    assert not (folder / "runs").exists()


def test_a_plan_is_not_replaced_by_the_run_it_describes(folder, refused):
    (folder / "mine.toml").rename(folder / "plan.toml")
    message = refused("reproduce plan.toml --data . -o .")
    assert "holds the plan itself, plan.toml, which the run would replace" in message
    assert (folder / "plan.toml").read_text("utf-8") == PLAN


def test_a_run_is_not_put_among_the_images(folder, refused):
    replace_in_plan(folder, "{data}/images.npz", "folder:{data}/classes")
    (folder / "classes" / "red").mkdir(parents=True)
    message = refused(COMMAND, "-o classes/run")
    assert "the output lies in the folder that is read" in message


def test_lists_and_plans_come_without_anything_heavy():
    heavy = ("sklearn", "numba", "torch", "matplotlib", "PIL", "cv2", "onnxruntime")
    code = (
        "import sys\n"
        "from shiftcal.cli.main import run\n"
        "for words in (['--list'], ['peek', '--show-plan']):\n"
        "    assert run(['reproduce', *words]) == 0\n"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
