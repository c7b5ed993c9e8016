"""``shiftcal reproduce`` as a process that is interrupted in each stage, and given again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from bank_process import kill, wait_for
from tiny_study import PLAN, write_study

# A function whose every batch takes a while if the file `slow` is there.
NET = """\
import pathlib, time
import numpy as np

def logits(batch):
    if len(batch) > 1:
        pathlib.Path("called").touch()
    if pathlib.Path("slow").exists():
        time.sleep(0.05)
    return batch.astype(np.float32).mean(axis=(1, 2)) / 64
"""
MANY_SEEDS = PLAN.replace("seeds = [0, 1]", f"seeds = {list(range(40))}")
LAST_LINES = [
    "note: the same command resumes where this one stopped.",
    "error: interrupted. Finished work is kept, and no file is left half-written.",
]


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


def finish(folder, *words):
    out, err = begin(folder, *words).communicate(timeout=300)
    assert "report     run" in out, err
    return (folder / "run" / "records.csv").read_bytes(), out


@pytest.fixture
def folder(tmp_path):
    write_study(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


@pytest.mark.slow
def test_scoring_that_was_interrupted_is_gone_on_with(folder):
    text = PLAN.replace('spec = ["net.onnx"]', 'spec = ["net.onnx"]\nbatch_size = 2')
    (folder / "mine.toml").write_text(text)
    (folder / "slow").touch()
    process = begin(folder, "--workers", "1")
    shards = lambda: len(list((folder / "run").rglob("*.shard")))  # noqa: E731
    wait_for(lambda: shards() >= 2, process)
    status, out, err = kill(process, signal.SIGINT)
    assert (status, out) == (130, "")
    assert err.splitlines()[-2:] == LAST_LINES
    done = shards()
    assert not (folder / "run" / "records.csv").exists()
    (folder / "slow").unlink()
    records, out = finish(folder, "--workers", "1")
    # Ninety images are one shard.
    assert f"scored     {(7 - done) * 90} images in this run" in out
    (folder / "run").rename(folder / "first")
    assert finish(folder, "--workers", "1")[0] == records


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_evaluation_that_was_interrupted_is_gone_on_with(folder, workers):
    (folder / "mine.toml").write_text(MANY_SEEDS)
    process = begin(folder, "--workers", workers)
    kept = lambda: len(list((folder / "run" / "evaluated").rglob("*.json")))  # noqa: E731
    wait_for(lambda: kept() >= 3, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: all processes are told
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-2:] == LAST_LINES
    assert "Traceback" not in err
    done = kept()
    assert done < 40 * 5
    assert not (folder / "run" / "records.csv").exists()
    records, out = finish(folder, "--workers", workers)
    assert "scored     0 images in this run" in out
    assert f"evaluated  {5 * (40 * 5 - done):,} of 1,000 in this run" in out
    (folder / "run").rename(folder / "first")
    assert finish(folder, "--workers", "1")[0] == records


@pytest.mark.slow
@pytest.mark.parametrize("first", ["records.csv", "tables/*.csv", "figures/*.png"])
def test_a_report_that_was_interrupted_is_written_again(folder, first):
    process = begin(folder, "--workers", "1")
    run = folder / "run"
    wait_for(lambda: list(run.glob(first)), process)
    status, out, err = kill(process, signal.SIGINT)
    assert (status, out) == (130, "")
    assert err.splitlines()[-2:] == LAST_LINES
    assert "Traceback" not in err
    assert not (run / "run.json").exists()
    assert not list(run.rglob("*.tmp"))
    records, out = finish(folder, "--workers", "1")
    assert "scored     0 images in this run" in out
    assert "evaluated  0 of 50 in this run" in out
    read = {file.relative_to(run): file.read_bytes() for file in run.rglob("*") if shown(file)}
    run.rename(folder / "first")
    assert finish(folder, "--workers", "1")[0] == records
    assert read == {file.relative_to(run): file.read_bytes() for file in run.rglob("*")
                    if shown(file)}  # fmt: skip


def shown(file):
    return file.parent.name in ("tables", "figures") or file.name in ("report.md", "report.json")
