from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from absent_package import hide
from small_demo import small_subject

import shiftcal.demo
from shiftcal.cli.main import run
from shiftcal.cli.output import pasted

pytestmark = pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The command on fewer digits, in a folder of the test's own."""
    monkeypatch.setattr(shiftcal.demo, "digits_subject", small_subject)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands_in(text):
    """The commands that a text says to try next."""
    lines = text.partition("Next, with the files just made:\n")[2].splitlines()
    return [line.strip() for line in lines if line.startswith("  shiftcal ")]


def rows_in(text):
    """Every row of the tables: target's file to method to its cells."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if ".npz, " in line:
            found[line.partition(".npz")[0].rpartition("/")[2]] = rows = {}
        elif found and len(words) == 7 and words[5] == "to":
            rows[words[0]] = words
    return found


def in_digits(value):
    return f"{value:.4f}"


@pytest.mark.slow
def test_what_is_printed_is_what_is_in_the_document_and_what_comes_next_works(
    small, shiftcal, capsys
):
    done = shiftcal("demo")
    assert done.status == 0
    told = json.loads((small / "shiftcal-demo" / "demo.json").read_text())
    printed = rows_in(done.out)
    assert list(printed) == ["fog", "mixture", "blur"]
    for one in told["targets"]:
        table = printed[one["name"]]
        assert set(table) == {method["name"] for method in one["methods"]}
        assert f"true accuracy {in_digits(one['accuracy']['value'])}" in done.out
        assert f"without labels: {in_digits(one['estimate']['value'])}" in done.out
        for method in one["methods"]:
            ece = method["ece"]
            numbers = [method["mean_confidence"], ece["value"], ece["low"], ece["high"]]
            cells = table[method["name"]]
            assert [*cells[2:5], cells[6]] == [in_digits(number) for number in numbers]
    assert "An example, not a measurement" in done.out
    assert "docs/choose.md" in done.out
    page = small / "shiftcal-demo" / "report.html"
    assert page.is_file()
    assert page.resolve().as_uri() in done.out
    steps = [line for line in done.err.splitlines() if line.startswith("progress: ")]
    assert [line.split(":")[1] for line in steps] == [f" {i} of 5" for i in range(1, 6)]
    lines = commands_in(done.out)
    assert [line.split()[1] for line in lines] == ["apply", "compare", "estimate", "report"]
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    assert (small / "shiftcal-demo" / "mixture.html").is_file()


def test_json_is_the_document(small, shiftcal_json):
    told = shiftcal_json("demo -o", "here")
    kept = json.loads((small / "here" / "demo.json").read_text())
    assert told["command"] == "demo"
    for key in ("targets", "next", "report", "n_sets", "clean_accuracy"):
        assert told[key] == kept[key]


@pytest.mark.slow
def test_without_jinja2_it_says_so_and_goes_on(small, shiftcal, monkeypatch, capsys):
    with monkeypatch.context() as hidden:
        hide(hidden, "jinja2")
        done = shiftcal("demo")
        assert done.status == 0
        assert "No report was written: a report in HTML needs jinja2" in done.out
        assert "pip install 'shiftcal[report]'" in done.out
        last = commands_in(done.out)[-1]
        assert last.split()[1] == "estimate"
        assert run(shlex.split(last)[1:]) == 0, capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(small, shiftcal, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shiftcal.report.facts.make_facts", interrupted)
        done = shiftcal("demo")
    assert done.status == 130
    assert done.out == ""
    assert "note: the same command resumes where this one stopped." in done.err
    assert "error: interrupted" in done.err
    left = {file.name for file in (small / "shiftcal-demo").iterdir()}
    assert {"demo.json", "bank", "fog.npz"} <= left
    assert not {name for name in left if name.endswith(".tmp")}


def test_a_folder_of_something_else_is_refused(small, refused):
    (small / "shiftcal-demo").mkdir()
    (small / "shiftcal-demo" / "thesis.tex").touch()
    text = refused("demo")
    assert "holds 'thesis.tex' and is no folder of a demo. Name a new one with -o." in text


def test_data_that_are_not_there_are_said_with_what_to_get(small, shiftcal):
    done = shiftcal("demo --data", "nowhere")
    assert done.status == 2
    assert "--data nowhere must be a folder with CIFAR-10" in done.err
    assert "shiftcal data get cifar10 --to nowhere" in done.err
    assert not (small / "shiftcal-demo").exists()


def test_a_path_with_a_space_can_be_pasted():
    words = ("shiftcal", "apply", "my demo/it's.json", "-o", "x.npz")
    if os.name == "nt":
        assert pasted(words) == 'shiftcal apply "my demo/it\'s.json" -o x.npz'
    else:
        assert shlex.split(pasted(words)) == list(words)


@pytest.mark.slow
def test_the_whole_demo_keeps_what_it_promises(tmp_path, monkeypatch, shiftcal):
    monkeypatch.chdir(tmp_path)
    assert shiftcal("demo").status == 0
    told = json.loads(Path("shiftcal-demo", "demo.json").read_text())
    assert (told["n_sets"], told["n_calibration"]) == (21, 598)
    error = {
        one["name"]: {method["name"]: method["ece"]["value"] for method in one["methods"]}
        for one in told["targets"]
    }
    # Another release of scikit-learn may train another network, so that bounds are wide.
    assert error["fog"]["vanilla"] > 0.15
    assert error["fog"]["rehearsal"] < error["fog"]["vanilla"] / 2
    assert error["mixture"]["rehearsal"] < error["mixture"]["vanilla"] / 1.5
    assert error["blur"]["rehearsal"] > error["blur"]["vanilla"]
    assert [one["verdict"] for one in told["targets"]] == ["over", "over", "worse"]
    for one in told["targets"]:
        assert one["estimate"]["low"] <= one["accuracy"]["value"] <= one["estimate"]["high"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_a_real_ctrl_c_in_the_middle_of_the_bank(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "shiftcal", "demo"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "2 of 5" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert "the same command resumes where this one stopped" in err
    assert (tmp_path / "shiftcal-demo" / "demo.json").is_file()
