"""The first ten minutes of a new user, who does what the README says, to the letter.

The commands are those of its blocks, run by a real shell with the installed program, in a folder
like a fresh clone, on files that belong to the user: logits and an ONNX file of a trained network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from own_digits import OwnDigits

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
ENVIRONMENT = Path(sys.executable).parent.parent
SCRIPT = ENVIRONMENT / "bin" / "shiftcal"

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="needs make and a shell"),
    pytest.mark.skipif(not SCRIPT.exists(), reason="the command is not installed"),
]


def block(after):
    """Lines of the first shell block behind a text of the README."""
    text = README.partition(after)[2]
    assert text, f"the README says nothing of {after}"
    found = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    return found[1].strip().splitlines()


INSTALL = block("## Install")
OWN_LOGITS = block("**Your own logits.**")
OWN_MODEL = block("**Your own model.**")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder like a fresh clone, with the environment of these tests as the one it installs."""
    folder = tmp_path_factory.mktemp("walk") / "shiftcal"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ENVIRONMENT, target_is_directory=True)
    return folder


@pytest.fixture(scope="module")
def own(clone):
    """The same with the user's files in it."""
    digits = OwnDigits()
    digits.write_logits(clone)
    digits.write_images(clone)
    digits.write_onnx(clone / "model.onnx")
    return digits


def shell(line, folder, *, activated=True):
    """One line of the README, as typed; its output and messages."""
    before = "source .venv/bin/activate && " if activated else ""
    # The environment is there: it is not installed again, whatever the age of its stamp.
    typed = line.replace("make ", "make --old-file=.venv/core.stamp ")
    done = subprocess.run(
        ["bash", "-c", before + typed],
        cwd=folder, env={**os.environ, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done


def text_of(page):
    """The words of a report."""
    return re.sub("<[^>]+>", " ", page.read_text("utf-8"))


def rows_of_table(text):
    """Method to mean confidence, accuracy and ECE, by the table that ``compare`` prints."""
    cells = (line.split() for line in text.split("\n\n")[1].splitlines()[1:])
    return {row[0]: tuple(map(float, row[-8:-5])) for row in cells}


def test_the_demo_and_its_report(clone):
    assert [line.split("#")[0].strip() for line in INSTALL] == [
        "make demo",
        "source .venv/bin/activate",
        "shiftcal doctor",
    ]
    done = shell(INSTALL[0], clone, activated=False)
    steps = re.findall(r"^progress: (\d) of 5", done.stderr, re.MULTILINE)
    assert steps == list("12345")
    named = re.search(r"^The report: (.+)$", done.stdout, re.MULTILINE)[1]
    assert f"`{named}`" in README
    assert "overconfident" in text_of(clone / named)
    told = json.loads((clone / "shiftcal-demo" / "demo.json").read_text("utf-8"))
    assert [target["name"] for target in told["targets"]] == ["fog", "mixture", "blur"]
    assert told["targets"][1]["mixture"]
    assert not set(told["corruptions"]) & {target["corruption"] for target in told["targets"]}
    fog = {method["name"]: method["ece"]["value"] for method in told["targets"][0]["methods"]}
    assert fog["rehearsal"] < fog["vanilla"] / 2
    for target in told["targets"]:
        assert (
            target["estimate"]["low"] <= target["accuracy"]["value"] <= target["estimate"]["high"]
        )
    # What it says to do next can be pasted as it stands, though nothing is activated.
    nexts = re.findall(r"^  (\S*shiftcal .+)$", done.stdout, re.MULTILINE)
    assert [line.split()[1] for line in nexts] == ["apply", "compare", "estimate", "report"]
    assert nexts[0].startswith(".venv/bin/shiftcal ")
    assert "confidence" in shell(nexts[0], clone, activated=False).stdout


def test_the_program_is_found_and_well_after_that(clone):
    done = shell(" && ".join(line.split("#")[0] for line in INSTALL[1:]), clone, activated=False)
    assert done.stdout.rstrip().endswith("no problems found")


def test_own_logits(clone, own):
    assert [line.split()[:2] for line in OWN_LOGITS] == [
        ["shiftcal", "compare"],
        ["shiftcal", "report"],
    ]
    rows = rows_of_table(shell(OWN_LOGITS[0], clone).stdout)
    raw, accuracy, error = rows["vanilla"]
    assert raw > accuracy + 0.1  # the user sees that the model is over-confident,
    assert rows["sac"][2] < 0.75 * error  # and by how much it is fixed
    arrived = own.arrived()
    predicted = own.logits(arrived).argmax(axis=1)
    assert accuracy == pytest.approx(np.mean(predicted == own.labels[own.new]), abs=1e-4)
    said = shell(OWN_LOGITS[1], clone).stdout
    assert said.splitlines()[0] in text_of(clone / "own-logits.html")


def test_own_model(clone, own):
    assert [line.split()[1] for line in OWN_MODEL] == ["bank", "score", "compare", "report"]
    built = shell(OWN_MODEL[0], clone).stdout
    images, labels = own.images[own.calibration], own.labels[own.calibration]
    known = np.mean(own.logits(images).argmax(axis=1) == labels)
    clean = next(line for line in built.splitlines() if line.split()[1:2] == ["clean"])
    assert float(clean.split()[-1]) == pytest.approx(known, abs=0.005)
    assert "16: 16 added" in built
    assert shell(OWN_MODEL[1], clone).returncode == 0
    with np.load(clone / "new.npz") as scores:
        assert scores["logits"].shape == (len(own.labels[own.new]), 10)
    compared = rows_of_table(shell(OWN_MODEL[2], clone).stdout)
    assert {"vanilla", "sac", "rehearsal"} <= set(compared)
    assert compared["vanilla"][1] == pytest.approx(
        np.mean(own.logits(own.arrived()).argmax(axis=1) == own.labels[own.new]), abs=0.01
    )
    assert compared["rehearsal"][2] < 0.75 * compared["vanilla"][2]
    said = shell(OWN_MODEL[3], clone).stdout
    assert said.splitlines()[0] in text_of(clone / "new.html")
