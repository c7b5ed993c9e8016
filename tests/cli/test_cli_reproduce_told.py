"""``shiftcal reproduce``: lists, plans, estimates, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from tiny_study import EVALUATIONS, PLAN, SETS, N, colours, write_study

from shiftcal import studies
from shiftcal.studies.plan.reading import BUILT_IN
from shiftcal.studies.stages import estimate, reporting

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
    monkeypatch.setattr(estimate, "measured_rate", partial(estimate.measured_rate, seconds=0.01))
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


def test_an_estimate_is_said_and_nothing_is_left(folder, shiftcal, shiftcal_json):
    done = shiftcal(COMMAND, "--estimate -o run")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{N * SETS} images to score at about ")
    assert f"; {EVALUATIONS} evaluations (" in done.out
    assert not (folder / "run").exists()
    told = shiftcal_json(COMMAND, "--estimate")
    assert (told["estimate"]["images"], told["estimate"]["evaluations"]) == (N * SETS, EVALUATIONS)
    assert told["estimate"]["seconds"] > told["estimate"]["images"] / told["estimate"]["rate"]
    assert not (folder / "runs").exists()


def test_an_estimate_counts_what_is_left(folder, shiftcal, shiftcal_json):
    assert shiftcal(COMMAND).status == 0
    replace_in_plan(folder, '"brightness"]', '"brightness", "saturate"]')
    before = (folder / "runs" / "mine" / "plan.toml").read_bytes()
    assert shiftcal_json(COMMAND, "--estimate")["estimate"]["images"] == 2 * N
    assert (folder / "runs" / "mine" / "plan.toml").read_bytes() == before


def test_missing_data_is_explained_with_what_to_get_and_where_to_put_it(folder, shiftcal):
    (folder / "mine.toml").write_text(PLAN + NATURAL, "utf-8")
    (folder / "net.onnx").unlink()
    done = shiftcal("reproduce mine.toml --data far -o run")
    assert (done.status, done.out) == (2, "")
    lines = done.err.splitlines()
    assert lines[0] == "the study needs what is not there:"
    for what in ("the model", "the images", "Painted by hand"):
        assert f"  {what}" in lines
    assert any(x.startswith("    net.onnx: net.onnx must be an ONNX file; there is") for x in lines)
    far = folder / "far"
    assert lines.count(f"  To get it: The colours: paint them, into {far}") == 1
    tried = [
        i for i, x in enumerate(lines) if x.startswith(f"    {far}/other.npz: {far}/other.npz")
    ]
    assert lines[tried[0] + 1] == f"  To get it: Painted: buy a brush, keep it in {far}"
    assert lines[-2].endswith(" --skip-missing runs without: Painted by hand.")
    assert lines[-1].startswith("error: the study was not run: data that it needs is not there.")
    assert not (folder / "run").exists()


def test_what_is_missing_can_be_left_out(folder, shiftcal, shiftcal_json):
    text = PLAN.replace('"sac",', '"sac", "cpcs",') + NATURAL
    (folder / "mine.toml").write_text(text, "utf-8")
    message = shiftcal(COMMAND).err
    assert "  training images, for CPCS\n    the plan names none: [data] train = ..." in message
    assert "--skip-missing runs without: training images, for CPCS; Painted by hand." in message
    told = shiftcal_json(COMMAND, "--skip-missing")
    assert told["records"] == EVALUATIONS
    assert [each.partition("\n")[0] for each in told["left_out"]] == [
        "training images, for CPCS",
        "Painted by hand",
    ]
    text = shiftcal(COMMAND, "--skip-missing").out
    assert "left out, because it is not there:\n  training images, for CPCS\n" in text


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


def test_ready_made_images_that_are_missing_are_told_of_before_anything_is_scored(folder, shiftcal):
    replace_in_plan(folder, "[shifts]", '[shifts]\nmade = "{data}/{corruption}-{severity}.npz"')
    done = shiftcal(COMMAND)
    assert done.status == 2
    assert "  6 of 6 sets of ready-made corrupted images ([shifts] made): pixelate-1, " in done.err
    assert f"    {folder}/pixelate-1.npz: {folder}/pixelate-1.npz does not exist" in done.err
    assert done.err.count("does not exist") == 1
    assert done.err.endswith("data that it needs is not there. The lines above say what.\n")
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reproduce", "STUDY must be the name of a study, a plan or the folder of a run."),
        ("reproduce syntetic", "no study is called 'syntetic', and no file. Did you mean 'syn"),
        ("reproduce gone.toml", "gone.toml could not be read: No such file or directory."),
        ("reproduce gone.toml --show-plan", "gone.toml could not be read"),
        ("reproduce images.npz", "images.npz could not be read: it is not UTF-8 text."),
        ("reproduce synthetic", "the plan 'synthetic' speaks of {data}: say where the data is wit"),
        ("reproduce mine.toml", "mine.toml speaks of {data}"),
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = [0, 1]", "seeds = [0, 1", "mine.toml is not TOML"),
        (
            "seeds = [0, 1]",
            "sedes = [0, 1]",
            "mine.toml has no entry 'sedes'. Did you mean 'seeds'",
        ),
        ('"synthetic"', '"syntetic"', "syntetic"),
        ('"ts"', '"tz"', "tz"),
        ('"contrast"', '"contrats"', "Did you mean 'contrast'?"),
        ("images = 45", "images = 90", "the plan calibrates on 90 images, and there are 90 in all"),
        ("[0, 2, 5]", "[0, 2, 6]", "contrast, which has the severities 1 to 5; got [0, 2, 6]."),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(folder, refused, old, new, message):
    replace_in_plan(folder, old, new)
    assert message in refused(COMMAND)
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
