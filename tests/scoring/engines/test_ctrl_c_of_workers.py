"""Ctrl-C reaches all processes of a terminal: the parent answers it, workers never hear of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import engine_work as ew
import pytest

from shiftcal.scoring.engines._executors import Processes
from shiftcal.scoring.engines._joblib import part_of_joblib

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux")


def holds_back_ctrl_c(pid):
    """Whether a process has SIGINT blocked or ignored; proc(5) gives both as bits."""
    lines = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    held = int(lines["SigBlk"], 16) | int(lines["SigIgn"], 16)
    return bool(held >> (signal.SIGINT - 1) & 1)


def test_a_worker_is_out_of_reach_from_its_first_moment(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    crew = Processes(ew.work_of(ew.Linear()), size=1, threads=1)
    try:
        crew.begin(0)
        (pid,) = crew.executors[0]._processes
        assert holds_back_ctrl_c(pid)  # long before it has imported anything
        assert not holds_back_ctrl_c(os.getpid())
    finally:
        crew.stop()


def test_ctrl_c_while_a_worker_is_started_comes_afterwards(tmp_path, monkeypatch):
    from shiftcal.scoring.engines import _executors

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    crew = Processes(ew.work_of(ew.Linear()), size=1, threads=1)
    submit, submitted = _executors._submit, []

    def interrupted(*task):
        # To this thread: what is sent to the process may be heard by any thread of it.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        submitted.append(submit(*task))
        return submitted[0]

    monkeypatch.setattr(_executors, "_submit", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            crew.begin(0)
        assert submitted
    finally:
        crew.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_worker_is_ended_quietly_right_after_it_was_given_something(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    manager = part_of_joblib("loky.process_executor")._ExecutorManagerThread
    woken = manager.wait_result_broken_or_wakeup

    def late(self):  # as on a machine that has much else to do
        found = woken(self)
        time.sleep(0.1)
        return found

    monkeypatch.setattr(manager, "wait_result_broken_or_wakeup", late)
    crew = Processes(ew.work_of(ew.Linear()), size=1, threads=1)
    try:
        crew.begin(0).result()
        time.sleep(0.2)
        crew.give(0, ew.shards()[0])
    finally:
        crew.stop()  # an error in the thread of loky fails this test


def alive_in_group(group):
    """Processes of a group that run; those that are only waiting to be counted do not."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state != "Z":
            found.append(file.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.4, 0.8, 3.0])  # at the imports of workers, and at work
def test_ctrl_c_ends_all_processes_quietly(tmp_path, seconds):
    code = (
        "import engine_work as ew, time\n"
        "from shiftcal.scoring.engines.local import LocalEngine\n"
        "work = ew.work_of(lambda batch: time.sleep(9) or batch[:, :3, 0, 0])\n"
        "print('begun', flush=True)\n"
        "try:\n"
        "    list(LocalEngine(workers=2).map_shards(work, ew.shards('pixelate')))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    support = str(Path(ew.__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": support, "TMPDIR": str(tmp_path)},
        start_new_session=True,  # a group of its own, all of which a terminal would interrupt
    ) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    end = time.monotonic() + 20
    while alive_in_group(process.pid):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert list(tmp_path.iterdir()) == []
