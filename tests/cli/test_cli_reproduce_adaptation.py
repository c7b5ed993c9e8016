"""``shiftcal reproduce`` with a study of domain adaptation."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from toy_adaptation import NETWORKS, PLAN, SPEC, write_domains

from shiftcal import studies
from shiftcal.cli.main import run as program
from shiftcal.studies import run as reporting

pytest.importorskip("torch")

COMMAND = f"reproduce mine.toml --data . --model {SPEC} --workers 1"
# Thirty images are in three bins.


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pictures are drawn once."""
    monkeypatch.setattr(reporting, "write_figure", lambda *_: None)
    monkeypatch.delenv("SHIFTCAL_CACHE", raising=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a study that was run once, with figures."""
    folder = write_domains(tmp_path_factory.mktemp("adaptation") / "study")
    (folder / "mine.toml").write_text(PLAN, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("SHIFTCAL_CACHE", raising=False)
        assert program([*COMMAND.split(), "--json"]) == 0
    return folder


@pytest.fixture
def there(finished, monkeypatch):
    """The same, which the test may look at and not change, as the current folder."""
    monkeypatch.chdir(finished)
    return finished


def test_missing_data_is_explained(tmp_path, monkeypatch, shiftcal):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(PLAN, "utf-8")
    done = shiftcal(COMMAND)
    assert done.status == 2
    for word in ("Dawn: get up early", "Noon: wait", "Dusk: wait longer"):
        assert word in done.err
    assert done.err.splitlines()[-1].startswith("error: the study was not run: data that it needs")


def test_a_run_never_overwrites_its_own_images_or_plan(there, refused):
    (there / "pictures").mkdir(exist_ok=True)
    shutil.copy(there / "dusk.npz", there / "pictures" / "dusk.npz")
    text = PLAN.replace('"{data}/dusk.npz"', '"{data}/pictures/dusk.npz"')
    (there / "other.toml").write_text(text, "utf-8")
    assert "pictures" in refused("reproduce other.toml --data . -o pictures")
    (there / "plan.toml").write_text(PLAN, "utf-8")
    assert "holds the plan itself" in refused("reproduce plan.toml --data else -o .")
    (there / "plan.toml").unlink()


def begin(folder, *words):
    """The command, as a process of its own in a group of its own, as a terminal has it."""
    support = Path(__file__).parents[1] / "support"
    return subprocess.Popen(
        [sys.executable, "-m", "shiftcal", *COMMAND.split()[:-2], "-o", "run", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SHIFTCAL_CACHE": "", "PYTHONPATH": str(support)},
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_trainings_that_were_stopped_are_resumed(tmp_path, finished, workers, how):
    folder = write_domains(tmp_path / "study")
    (folder / "mine.toml").write_text(PLAN, "utf-8")
    process = begin(folder, "--workers", workers)
    trained = lambda: len(list(folder.glob("run/trainings/*/*/*/adapt.json")))  # noqa: E731
    until = time.monotonic() + 300  # torch alone may take a minute to start on a busy machine
    while trained() < 2 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(process.pid, how)
    _, err = process.communicate(timeout=300)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "note: the same command resumes where this one stopped." in err
        assert "Traceback" not in err
    done = trained()
    assert done < NETWORKS
    assert not (folder / "run" / "records.csv").exists()
    out, err = begin(folder, "--workers", workers).communicate(timeout=300)
    assert f"trained        {NETWORKS - done}\n" in out, err
    ours, theirs = (
        [_without_place(record) for record in studies.Run(run).records]
        for run in (folder / "run", finished / "runs" / "mine")
    )
    assert ours == theirs


def _without_place(record):
    """Where images are decides the folder of a network, and nothing of its numbers."""
    return replace(record, arrays="", key="")
