"""The first ten minutes of a new user, who does what the README says, to the letter.

The commands are those of its blocks, run by a real shell with the installed program, in a folder
like a fresh clone, on files that belong to the user: logits and an ONNX file of a trained network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper
from PIL import Image

import shiftcal as sc
from shiftcal.demo import enlarged, rows_of

N_TRAIN, N_CALIBRATION = 1200, 300


class OwnDigits:
    """A network of one hidden layer, and digits it has not seen: some to calibrate on, some new."""

    def __init__(self):
        from sklearn.datasets import load_digits
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        bunch = load_digits()
        order = np.random.default_rng(0).permutation(len(bunch.target))
        grey, labels = enlarged(bunch.images)[order], bunch.target[order]
        self.images = np.repeat(grey[..., None], 3, axis=-1)
        self.labels = labels
        network = MLPClassifier((64,), max_iter=60, tol=0, n_iter_no_change=60, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(rows_of(grey[:N_TRAIN]), labels[:N_TRAIN])
        self.weights, self.biases = network.coefs_, network.intercepts_
        self.calibration = slice(N_TRAIN, N_TRAIN + N_CALIBRATION)
        self.new = slice(N_TRAIN + N_CALIBRATION, None)

    def logits(self, images):
        """By numpy, as the ONNX file must give them too."""
        hidden = np.maximum(rows_of(images[..., 0]) @ self.weights[0] + self.biases[0], 0)
        return hidden @ self.weights[1] + self.biases[1]

    def arrived(self):
        """The new images, in fog."""
        return sc.corrupt(self.images[self.new], "fog", severity=1, table="imagenet")

    def write_logits(self, folder: Path):
        """``clean.npz``, ``s1.npz`` and ``s2.npz`` with labels, and ``target.npz`` in fog."""
        images, labels = self.images[self.calibration], self.labels[self.calibration]
        harder = [
            sc.corrupt(images, "brightness", severity=severity, table="imagenet")
            for severity in (2, 4)
        ]
        for name, each in zip(("clean", "s1", "s2"), (images, *harder), strict=True):
            np.savez(folder / f"{name}.npz", logits=self.logits(each), labels=labels)
        np.savez(
            folder / "target.npz", logits=self.logits(self.arrived()), labels=self.labels[self.new]
        )

    def write_images(self, folder: Path):
        """``calibration/<class>/<number>.png`` and ``new-images/<class>/<number>.png``."""
        sets = {
            "calibration": (self.images[self.calibration], self.labels[self.calibration]),
            "new-images": (self.arrived(), self.labels[self.new]),
        }
        for name, (images, labels) in sets.items():
            for i, (image, label) in enumerate(zip(images, labels, strict=True)):
                file = folder / name / str(label) / f"{i:04}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(image).save(file)

    def write_onnx(self, file: Path):
        """The network as a file: pixels from 0 to 1, ``(n, 3, 32, 32)``, to logits."""
        (w0, w1), (b0, b1) = self.weights, self.biases
        layers = {"w0": w0, "b0": b0, "w1": w1, "b1": b1}
        constants = [
            numpy_helper.from_array(np.asarray(value, np.float32), name)
            for name, value in layers.items()
        ]
        constants.append(numpy_helper.from_array(np.array([0], np.int64), "red"))
        nodes = [
            helper.make_node("Gather", ["images", "red"], ["grey"], axis=1),
            helper.make_node("Flatten", ["grey"], ["x"]),
            helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]),
            helper.make_node("Relu", ["h"], ["a"]),
            helper.make_node("Gemm", ["a", "w1", "b1"], ["logits"]),
        ]
        ends = [
            helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 32, 32]),
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 10]),
        ]
        graph = helper.make_graph(nodes, "digits", ends[:1], ends[1:], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        checker.check_model(model)
        file.write_bytes(model.SerializeToString())


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
OWN_MODEL = block("## On the command line")
OWN_LOGITS = re.search(r"`(shiftcal compare --surrogate [^`]+)`", README)[1]


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
    named = re.search(r"^The report: (.+)$", done.stdout, re.MULTILINE)[1]
    assert f"`{named}`" in README
    assert "overconfident" in text_of(clone / named)
    table = {row[0]: row[1:] for row in map(str.split, done.stdout.splitlines()) if row}
    methods = ["ECE:", "raw", "TS", "STS", "SAC", "Rehearsal", "Realign"]
    assert table["in"] == ["percent", "accuracy", "after", "Realign", *methods]
    accuracy, realigned, raw, *_, rehearsal, _ = map(float, table["mean"])
    assert realigned > accuracy
    assert rehearsal < raw / 4
    # What it says to do next can be pasted as it stands, though nothing is activated.
    nexts = re.findall(r"^  (\S*shiftcal .+)$", done.stdout, re.MULTILINE)
    assert [line.split()[1] for line in nexts] == ["apply", "compare", "report"]
    assert nexts[0].startswith(".venv/bin/shiftcal ")
    assert "confidence" in shell(nexts[0], clone, activated=False).stdout


def test_the_program_is_found_and_well_after_that(clone):
    done = shell(" && ".join(line.split("#")[0] for line in INSTALL[1:]), clone, activated=False)
    assert done.stdout.rstrip().endswith("no problems found")


def test_own_logits(clone, own):
    rows = rows_of_table(shell(OWN_LOGITS, clone).stdout)
    raw, accuracy, error = rows["vanilla"]
    assert raw > accuracy + 0.1  # the user sees that the model is over-confident,
    assert rows["sac"][2] < 0.75 * error  # and by how much it is fixed
    arrived = own.arrived()
    predicted = own.logits(arrived).argmax(axis=1)
    assert accuracy == pytest.approx(np.mean(predicted == own.labels[own.new]), abs=1e-4)
    said = shell(OWN_LOGITS.replace("compare", "report"), clone).stdout
    assert said.splitlines()[0] in text_of(clone / "report.html")


def test_own_model(clone, own):
    assert [line.split()[1] for line in OWN_MODEL] == ["bank", "score", "compare", "report"]
    built = shell(OWN_MODEL[0], clone).stdout
    images, labels = own.images[own.calibration], own.labels[own.calibration]
    known = np.mean(own.logits(images).argmax(axis=1) == labels)
    clean = next(line for line in built.splitlines() if line.split()[1:2] == ["clean"])
    assert float(clean.split()[-1]) == pytest.approx(known, abs=0.005)
    assert "sets added     26\n" in built
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
