"""No command runs a Python file of the current folder that nobody named, in no process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx_resnet import mean_colour_onnx
from tiny_study import write_study
from toy_adaptation import PLAN, SPEC, write_domains
from two_domains import drawn, write_domain

MODULES = ["-m", "shiftcal"]
# Modules that start workers, that workers import, and that libraries try and do without.
HOSTILE = ("joblib", "argparse", "numpy", "multiprocessing", "viztracer", "cupy")
OWN = "import numpy, joblib\ndef logits(batch):\n    return batch.mean((1, 2)) / 64\n"
QUICK = "--set iterations=4 --set batch_size=8 --set bottleneck=6 --severity 1,5"
TRAIN = f"train --method mcc --source photos --target sketches {QUICK} -o run"
FROZEN = f"{TRAIN} --backbone net.onnx?features_from=x --frozen"


@pytest.fixture
def folder(tmp_path):
    """Data of every command next to hostile files, which leave a file ``ran``."""
    write_study(tmp_path)
    write_domains(tmp_path)
    (tmp_path / "adaptation.toml").write_text(PLAN, "utf-8")
    write_domain(tmp_path / "photos", *drawn(60, seed=1))
    write_domain(tmp_path / "sketches", *drawn(60, shift=0.7, seed=2))
    (tmp_path / "net.onnx").write_bytes(mean_colour_onnx(["n", 3, 16, 16]))
    (tmp_path / "own.py").write_text(OWN)
    for name in HOSTILE:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')"
        )
    return tmp_path


def called(folder, words, *, start=MODULES, before=""):
    """What the program prints, started as Python starts a module: with this folder on the path."""
    support = [str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, *start, *words.split()],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": before + os.pathsep.join(filter(None, support)),
            "SHIFTCAL_CACHE": "",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    ran = folder / "ran"
    assert not ran.exists(), ran.read_text()
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "score --model net.onnx --images images.npz --shard-size 30 --workers 2 -o out.npz",
        "corrupt photos damaged --corruption fog",
        f"{FROZEN} --workers 2",
        pytest.param("reproduce mine.toml --data . --workers 2", marks=pytest.mark.slow),
        pytest.param(
            f"reproduce adaptation.toml --data . --model {SPEC} --workers 2", marks=pytest.mark.slow
        ),
        pytest.param(
            "score --model net.onnx --images images.npz --engine ray --workers 1 -o out.npz",
            marks=pytest.mark.slow,
            id="ray",
        ),
    ],
)
def test_files_of_the_current_folder_are_not_run(folder, words):
    if "torch" in words or "train" in words or "adapt" in words:
        pytest.importorskip("torch")
    if "ray" in words:
        pytest.importorskip("ray")
    called(folder, words)


def test_an_empty_entry_of_pythonpath_is_not_the_current_folder(folder):
    """``export PYTHONPATH=$PYTHONPATH:x`` leaves one where the variable was not set."""
    words = "score --model net.onnx --images images.npz --shard-size 30 --workers 2 -o out.npz"
    called(folder, words, before=os.pathsep)


@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.slow)])
def test_a_model_of_the_current_folder_that_is_named_works_in_workers(folder, engine):
    pytest.importorskip("ray") if engine == "ray" else None
    words = (
        "score --model python:own:logits?raw=true --images images.npz --shard-size 30 -o out.npz"
    )
    called(folder, f"{words} --workers 2 --engine {engine}")
    with np.load(folder / "images.npz") as images, np.load(folder / "out.npz") as out:
        np.testing.assert_allclose(out["logits"], images["images"].mean((1, 2)) / 64, rtol=1e-5)


def test_workers_of_a_program_in_the_folder_do_not_run_them(folder):
    """Python itself puts the folder on its path here, so what the program imports comes first."""
    (folder / "program.py").write_text(
        "import sys; here = sys.path.pop(0)\n"
        "import numpy, joblib, argparse, multiprocessing, shiftcal\n"
        "sys.path.insert(0, here)\n"
        "from own import logits\n"
        "from shiftcal.scoring.engines import LocalEngine\n"
        "images = numpy.load('images.npz')['images']\n"
        "done = shiftcal.score(logits, images, engine=LocalEngine(workers=2), shard_size=30)\n"
        "print(len(done.values), here in sys.path)\n"
    )
    assert called(folder, "", start=["program.py"]).split() == ["90", "True"]
