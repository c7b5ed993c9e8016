"""``shiftcal monitor`` as a process: signals, kills and restarts, full disks and the metrics."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from ladder_data import STEPS, draw
from monitor_streams import npy
from prometheus_client.parser import text_string_to_metric_families

import shiftcal as sc
from shiftcal.cli.monitor import StateFile

CLEAN = draw(600, STEPS[0], seed=1)[0]
STREAM = np.concatenate([CLEAN, draw(600, STEPS[3], seed=2)[0], CLEAN * 0.05])
BATCHES = [STREAM[i : i + 60] for i in range(0, len(STREAM), 60)]
WORDS = ["sac.json", "--json", "--every", "60", "--confidences", "c.jsonl", "--state", "s.json"]
LIMIT = 120


class Process:
    """A running command; its lines are collected as they come."""

    def __init__(self, words, **options):
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "shiftcal", "monitor", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip
        self.out, self.err = [], []
        pairs = ((self.popen.stdout, self.out), (self.popen.stderr, self.err))
        self.threads = [threading.Thread(target=self._collect, args=pair) for pair in pairs]
        for thread in self.threads:
            thread.start()

    def _collect(self, stream, lines):
        with stream:
            for line in stream:
                lines.append(line.decode().rstrip("\n"))  # at once, for those who wait

    def send(self, *batches):
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.write(npy(*batches))
            self.popen.stdin.flush()

    def wait_for(self, condition):
        until = time.monotonic() + LIMIT
        while not condition():
            assert self.popen.poll() is None, self.err
            assert time.monotonic() < until, (self.out, self.err)
            time.sleep(0.01)

    def end(self, number=None):
        """Signal it, or end its input, and return the status."""
        if number is not None:
            self.popen.send_signal(number)
            status = self.popen.wait(LIMIT)
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.close()
        status = self.popen.wait(LIMIT)
        for thread in self.threads:
            thread.join(LIMIT)
        return status

    def rows(self):
        lines = [json.loads(line) for line in self.out]
        return [line["row"] for line in lines if line["type"] == "window"]


@pytest.fixture
def begin(watched):
    begun = []

    def call(*words, **options):
        begun.append(Process(words, cwd=watched, **options))
        return begun[-1]

    yield call
    for process in begun:
        process.end(signal.SIGKILL)


def confidences():
    return [json.loads(line)["confidence"] for line in Path("c.jsonl").read_text().splitlines()]


def expected():
    return sc.load("sac.json").feed(STREAM).confidence.tolist()


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_a_signal_ends_it_after_the_batch_and_it_resumes(begin, number, status):
    process = begin(*WORDS)
    process.send(*BATCHES[:5])
    process.wait_for(lambda: process.rows()[-1:] == [300])
    other = begin(*WORDS)
    assert other.end() == 2
    assert "s.json is in use by another `shiftcal monitor`" in other.err[0]
    assert process.end(number) == status
    last = json.loads(process.out[-1])
    assert (last["type"], last["by"], last["row"]) == ("end", number.name, 300)
    again = begin(*WORDS, "--replay")
    again.send(*BATCHES)
    assert again.end() == 0, again.err
    assert "note: resuming after row 300, from s.json" in again.err
    assert confidences() == expected()
    assert process.rows() + again.rows() == list(range(60, len(STREAM) + 1, 60))


@pytest.mark.parametrize(("follow", "power_cut"), [(False, False), (True, False), (False, True)])
def test_kill_9_loses_nothing_and_a_power_cut_nothing_that_is_sent_again(
    begin, watched, follow, power_cut
):
    folder = watched / "in"
    folder.mkdir()
    words = [*WORDS, "--follow", "in", "--settle", "0"] if follow else [*WORDS, "--replay"]
    lines = []
    for kill in (4, 9, None):
        process = begin(*words, *["--once"] * (follow and kill is None))
        for i, batch in enumerate(BATCHES[:kill]):
            if follow:
                np.savez(folder / f".{i:03}.npz", logits=batch)
                (folder / f".{i:03}.npz").rename(folder / f"{i:03}.npz")
            else:
                process.send(batch)
        if kill is None:
            assert process.end() == 0, process.err
        else:
            process.wait_for(lambda process=process: process.rows())
            process.end(signal.SIGKILL)
            if power_cut:  # what was never flushed
                (watched / "s.json-wal").unlink()
        lines += [line for line in process.out if '"window"' in line or '"event"' in line]
    assert confidences() == expected()
    # At least once: a batch that was printed but not in the state yet is printed again.
    found = sorted({json.loads(line)["row"] for line in lines if '"window"' in line})
    assert found == list(range(60, len(STREAM) + 1, 60))


def test_kill_9_loses_no_waiting_row_and_no_label(begin, watched):
    predicted = STREAM.argmax(axis=1)
    path = watched / "labels.jsonl"
    words = [*WORDS, "--labels-follow", "labels.jsonl", "--replay"]
    for start, kill in ((0, 6), (6, 15), (15, None)):
        process = begin(*words)
        process.send(*BATCHES[:kill])
        seen = 60 * (kill or 30)
        process.wait_for(lambda process=process, seen=seen: seen in process.rows())
        with path.open("a") as file:
            for i in range(60 * start, seen, 3):
                file.write(f'{{"id": {i}, "label": {predicted[i]}}}\n')
        if kill is None:
            assert process.end() == 0, process.err
        else:  # some labels are taken with one of these batches, or after the restart
            process.send(*BATCHES[kill : kill + 1])
            process.end(signal.SIGKILL)
    state = StateFile(Path("s.json"))
    ledger = state.read()[0]["running"]["ledger"]
    state.close()
    assert (ledger["labelled"], len(ledger["waiting"])) == (600, 1200)
    assert sorted(entry[0] for entry in ledger["waiting"].values()) == [
        i for i in range(1800) if i % 3
    ]
    assert ledger["unknown"] == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a limit of file sizes")
@pytest.mark.parametrize(("size", "file"), [(8_000, "s.json"), (60_000, "c.jsonl")])
def test_a_full_disk_is_reported_and_nothing_is_lost(begin, watched, size, file):
    import resource

    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}
    process = begin(*WORDS, **limit)
    process.send(*BATCHES)
    assert process.end() == 2
    assert process.err[-1].startswith(f"error: {file} could not be written: ")
    again = begin(*WORDS, "--replay")
    again.send(*BATCHES)
    assert again.end() == 0, again.err
    assert confidences() == expected()


def test_the_metrics_are_those_of_prometheus(begin):
    process = begin("rehearsal.json", "--json", "--metrics-port", "0", "--on-error", "skip")
    process.wait_for(lambda: process.err)
    address = process.err[0].rpartition(" ")[2]
    port = int(address.rpartition(":")[2].partition("/")[0])
    taken = begin("sac.json", "--metrics-port", str(port))
    assert taken.end() == 2
    assert "metrics cannot be served at 127.0.0.1, port" in taken.err[0]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def scrape():
        with opener.open(address, timeout=LIMIT) as answer:
            return {
                (sample.name, *sample.labels.values()): sample.value
                for family in text_string_to_metric_families(answer.read().decode())
                for sample in family.samples
            }

    assert scrape()["shiftcal_rows_total",] == 0
    process.send(*BATCHES, BATCHES[0][:, :2])
    process.wait_for(lambda: scrape()["shiftcal_malformed_batches_total",] == 1)
    found = scrape()
    (last,) = [json.loads(line) for line in process.out if '"window"' in line][-1:]
    assert found["shiftcal_rows_total",] == len(STREAM)
    assert found["shiftcal_batches_total",] == len(BATCHES)
    assert found["shiftcal_state", last["state"]] == 1
    assert found["shiftcal_events_total", "shift-began"] >= 1
    assert found["shiftcal_temperature",] == last["temperature"]
    assert found["shiftcal_mean_confidence", "calibrated"] == last["mean_confidence"]
    assert found["shiftcal_estimated_accuracy", "value"] == last["accuracy"]["value"]
    assert process.end() == 0
    assert not any("Traceback" in line for line in process.err)


def test_a_reader_that_has_seen_enough_ends_it(begin):
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "shiftcal", "monitor", "sac.json", "--every", "60"],
        stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writer)
    process.stdin.write(npy(BATCHES[0]))
    process.stdin.flush()
    with open(reader, encoding="utf-8") as stream:  # noqa: PTH123
        assert stream.readline().startswith("row 60  ")
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(npy(*BATCHES))
        process.stdin.flush()
    assert process.wait(LIMIT) == 0
    with process.stdin, process.stderr:
        assert process.stderr.read() == b""
