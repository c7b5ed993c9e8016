"""``shiftcal monitor`` as a process: signals, kills and restarts, pipes, disks and the metrics."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from ladder_data import STEPS, draw
from monitor_command import LIMIT, Server
from monitor_streams import arrow, columns, jsonl, npy
from prometheus_client.parser import text_string_to_metric_families

import shiftcal as sc

CLEAN = draw(600, STEPS[0], seed=1)[0]
STREAM = np.concatenate([CLEAN, draw(600, STEPS[3], seed=2)[0], CLEAN * 0.05])
BATCHES = [STREAM[i : i + 60] for i in range(0, len(STREAM), 60)]
PROGRAM = [sys.executable, "-m", "shiftcal", "monitor", "sac.json"]


@pytest.fixture(scope="module")
def server(monitors):
    with tempfile.TemporaryDirectory() as folder:
        serving = Server(Path(folder), monitors / "rehearsal.json")
        yield serving
        serving.close()


@pytest.fixture
def begin(watched, server):
    """``begin("sac.json", "--json")``: a process in the folder of the monitors."""
    begun = []

    def call(*words, **options):
        begun.append(server.begin(*words, cwd=watched, **options))
        return begun[-1]

    yield call
    for each in begun:
        if each.status is None:
            each.end(signal.SIGKILL)


@pytest.fixture
def nothing():
    """An input that has ended."""
    with open(os.devnull) as stream:  # noqa: PTH123
        yield stream.fileno()


def expected():
    """Confidences of the whole stream, as a monitor in this process gives them."""
    return sc.load("sac.json").feed(STREAM).confidence.tolist()


def rows_of(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def size(path):
    return Path(path).stat().st_size if Path(path).exists() else 0


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, "error: interrupted. "), (signal.SIGTERM, 143, "error: terminated. ")],
)
@pytest.mark.parametrize("form", [npy, arrow])
def test_a_signal_while_it_waits_ends_it_cleanly_and_nothing_is_lost(
    begin, number, status, said, form
):
    words = ["sac.json", "--json", "--state", "s.json", "--confidences", "c.jsonl", "--every", "60"]
    whole = form(*BATCHES) if form is npy else arrow(*map(columns, BATCHES))
    one = len(whole) // len(BATCHES)
    process = begin(*words)
    process.send(whole[: 5 * one + one // 2])  # half a batch is on its way
    process.wait_for(lambda: any(line.get("row") == 240 for line in process.lines))
    assert process.end(number) == status
    assert process.err[-1].startswith(said)
    *_, last = process.lines
    assert (last["type"], last["by"]) == ("end", number.name)
    seen = last["row"]
    rows = rows_of("c.jsonl")
    assert [row["row"] for row in rows] == list(range(seen))
    again = begin(*words, "--replay")
    again.send(whole)
    assert again.end() == 0, again.err
    assert f"note: going on after row {seen:,}, as s.json says" in again.err
    assert [row["confidence"] for row in rows_of("c.jsonl")] == expected()
    told = [line for line in process.lines + again.lines if line["type"] == "window"]
    assert [line["row"] for line in told] == list(range(60, len(STREAM) + 1, 60))


def test_a_process_that_is_killed_again_and_again_gives_what_one_run_gives(begin, watched):
    words = ["sac.json", "--json", "--confidences", "c.jsonl", "--every", "60"]
    whole = begin(*words, "--confidences", "whole.jsonl")
    whole.send(npy(*BATCHES))
    assert whole.end() == 0, whole.err
    told, status, kills = [], None, 0
    while status is None:
        process = begin(*words, "--state", "s.json", "--replay")
        before = size("c.jsonl")
        for i, batch in enumerate(BATCHES):
            process.send(npy(batch))
            if kills < 3 and i == 8 * (kills + 1):
                # Anywhere between the write of confidences, the state and the lines.
                process.wait_for(lambda before=before: size("c.jsonl") > before)
                process.end(signal.SIGKILL)
                kills += 1
                break
        else:
            status = process.end()
            assert status == 0, process.err
        told += process.lines
    assert (watched / "c.jsonl").read_bytes() == (watched / "whole.jsonl").read_bytes()
    # Every line is there, and none twice that does not say so.
    fresh, repeated = [], []
    for line in told:
        if line["type"] in ("window", "event"):
            (repeated if line.pop("repeated", False) else fresh).append(json.dumps(line))
    kept = [json.dumps(x) for x in whole.lines if x["type"] in ("window", "event")]
    assert len(set(fresh)) == len(fresh)
    assert set(fresh) | set(repeated) == set(kept)


def test_files_are_read_as_they_appear_and_a_killed_run_goes_on(begin, watched, nothing):
    folder = watched / "in"
    folder.mkdir()
    words = ["sac.json", "--follow", "in", "--json", "--settle", "0.05", "--state", "s.json",
             "--confidences", "c.jsonl", "--every", "60"]  # fmt: skip

    def put(i):
        np.savez(folder / f".{i:03}.npz", logits=BATCHES[i])
        (folder / f".{i:03}.npz").rename(folder / f"{i:03}.npz")

    def done(i):
        return lambda: any(line.get("row") == 60 * (i + 1) for line in process.lines)

    process = begin(*words, stdin=nothing)
    for i in range(4):
        put(i)
        process.wait_for(done(i))
    put(4)
    process.end(signal.SIGKILL)
    process = begin(*words, stdin=nothing)
    put(5)
    process.wait_for(done(5))
    assert process.end(signal.SIGTERM) == 143
    for i in range(6, len(BATCHES)):
        put(i)
    process = begin(*words, "--once", stdin=nothing)
    assert process.end() == 0, process.err
    assert [row["confidence"] for row in rows_of("c.jsonl")] == expected()
    assert process.lines[-1]["row"] == len(STREAM)


def test_a_second_signal_ends_it_at_once(begin, watched):
    reader, writer = os.pipe()  # a stdout that nobody reads, and that is full
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    process = begin("sac.json", "--state", "s.json", "--every", "60", stdout=writer)
    os.close(writer)
    process.send(npy(*BATCHES[:2]))
    state = Path("s.json")
    process.wait_for(lambda: state.exists() and '"row": 60' in state.read_text())
    process.signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.status is None
    assert process.end(signal.SIGTERM) == -signal.SIGTERM
    os.close(reader)
    # What could not be printed is printed by the next one, and marked.
    again = begin("sac.json", "--state", "s.json", "--every", "60", "--json")
    again.send(npy(BATCHES[2]))
    assert again.end() == 0, again.err
    assert again.lines[1].get("repeated") is True
    assert again.lines[1]["row"] == 60


def address_of(process):
    process.wait_for(lambda: any("metrics are at" in line for line in process.err))
    (note,) = [line for line in process.err if "metrics are at" in line]
    return note.rpartition(" ")[2]


def scraped(address):
    without = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with without.open(address, timeout=LIMIT) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }


def test_the_metrics_are_those_of_prometheus(begin):
    process = begin("rehearsal.json", "--json", "--metrics-port", "0", "--on-error", "skip")
    address = address_of(process)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", address)
    without = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def scrape():
        return scraped(address)

    first = scrape()
    assert first["shiftcal_rows_total",] == 0
    assert first["shiftcal_temperature",] > 0
    assert np.isnan(first["shiftcal_mean_confidence", "raw"])
    assert first["shiftcal_state", "filling"] == 1
    assert first["shiftcal_events_total", "outside-bank"] == 0
    process.send(jsonl(*[batch.tolist() for batch in BATCHES], [1, 2]))
    process.wait_for(lambda: scrape()["shiftcal_malformed_batches_total",] == 1)
    found = scrape()
    windows = [line for line in process.lines if line["type"] == "window"]
    assert found["shiftcal_rows_total",] == len(STREAM)
    assert found["shiftcal_batches_total",] == len(BATCHES)
    assert found["shiftcal_state", "outside-bank"] == 1
    assert found["shiftcal_state", "normal"] == 0
    assert found["shiftcal_events_total", "shift-began"] >= 1
    assert found["shiftcal_temperature",] == windows[-1]["temperature"]
    assert found["shiftcal_mean_confidence", "raw"] == windows[-1]["raw_mean_confidence"]
    assert found["shiftcal_mean_confidence", "calibrated"] == windows[-1]["mean_confidence"]
    for bound in ("value", "low", "high"):
        assert found["shiftcal_estimated_accuracy", bound] == windows[-1]["accuracy"][bound]
    assert process.end() == 0
    with pytest.raises(OSError, match="refused"):
        without.open(address, timeout=LIMIT)


def test_a_batch_of_which_a_part_is_refused_is_in_no_metric(begin):
    # Shifted rows up to a line, and between that and the next what looks like probabilities.
    mixed = np.concatenate([STREAM[-360:], np.full((70, 6), 1 / 6)])
    words = ("--every", "70", "--on-error", "skip", "--metrics-port", "0")
    process = begin("sac.json", *words)
    address = address_of(process)
    process.send(npy(BATCHES[0], mixed))
    process.wait_for(lambda: scraped(address)["shiftcal_malformed_batches_total",] == 1)
    found = scraped(address)
    assert found["shiftcal_rows_total",] == len(BATCHES[0])
    assert found["shiftcal_batches_total",] == 1
    assert found["shiftcal_events_total", "shift-began"] == 0
    assert found["shiftcal_state", "filling"] == 1
    process.end()


def test_after_a_restart_the_metrics_tell_the_state_before_anything_comes(begin):
    first = begin("sac.json", "--state", "s.json")
    first.send(npy(*BATCHES))
    assert first.end() == 0
    second = begin("sac.json", "--state", "s.json", "--metrics-port", "0")
    found = scraped(address_of(second))
    assert found["shiftcal_rows_total",] == 0
    assert found["shiftcal_state", "outside-bank"] == 1
    assert found["shiftcal_state", "filling"] == 0
    second.end()


def test_a_port_in_use_is_told(begin):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = begin("sac.json", "--metrics-port", port)
        assert process.end() == 2
    (said,) = process.err
    assert said.startswith(f"error: metrics cannot be served at 127.0.0.1, port {port}: Address")
    assert "Name another port with --metrics-port (0 takes any that is free)" in said


def test_two_processes_do_not_share_a_state(begin):
    first = begin("sac.json", "--state", "s.json")
    first.send(npy(BATCHES[0]))
    first.wait_for(lambda: size("s.json") > 0)
    second = begin("sac.json", "--state", "s.json")
    assert second.end() == 2
    assert "s.json is in use by another `shiftcal monitor`" in second.err[0]
    assert first.end() == 0


def test_a_reader_that_has_seen_enough_ends_it(begin):
    reader, writer = os.pipe()
    process = begin("sac.json", "--every", "60", stdout=writer)
    os.close(writer)
    process.send(npy(BATCHES[0]))
    with open(reader, encoding="utf-8") as stream:  # noqa: PTH123
        assert stream.readline().startswith("row 60  ")
    process.send(npy(*BATCHES))
    process.send(npy(*BATCHES))  # it ends though its input does not
    process.await_end()
    assert (process.end(), process.err) == (0, [])


def test_an_input_without_batches_is_told_with_what_to_do(begin, nothing):
    process = begin("sac.json", stdin=nothing)
    assert (process.end(), process.out) == (2, [])
    (said,) = process.err
    assert said.startswith("error: standard input ended before anything came. Send batches")
    assert "--follow" in said


def test_a_terminal_is_no_stream(begin):
    controller, terminal = pty.openpty()
    process = begin("sac.json", stdin=terminal)
    assert (process.end(), process.out) == (2, [])
    os.close(controller)
    os.close(terminal)
    (said,) = process.err
    assert said.startswith("error: standard input is a terminal, and batches are read from it.")


def test_a_closed_input_is_told_by_the_program_itself(watched):
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *PROGRAM],
        capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: standard input is closed, and batches are read from it.")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_told_and_the_state_is_kept(begin):
    words = ["sac.json", "--state", "s.json", "--every", "60"]
    with Path("/dev/full").open("w") as full:
        process = begin(*words, stdout=full.fileno())
    process.send(npy(*BATCHES))
    assert process.end() == 2
    (said,) = process.err
    assert said.startswith("error: stdout could not be written: No space left")
    again = begin(*words, "--replay", "--json")
    again.send(npy(*BATCHES))
    assert again.end() == 0, again.err
    told = [line for line in again.lines if line["type"] == "window"]
    assert [line["row"] for line in told] == list(range(60, len(STREAM) + 1, 60))


@pytest.mark.parametrize("where", ["confidences", "state"])
def test_a_file_that_cannot_grow_is_told_and_what_was_acknowledged_is_whole(begin, watched, where):
    words = ["sac.json", "--state", "s.json", "--json"]
    if where == "confidences":
        words += ["--confidences", "c.jsonl"]
    # A limit on the size of files stands for a full disk, and needs no rights.
    process = begin(*words, limit=8000 if where == "confidences" else 1500)
    process.send(npy(*BATCHES))
    assert process.end() == 2
    (said,) = process.err
    name = "c.jsonl" if where == "confidences" else "s.json"
    assert said.startswith(f"error: {name} could not be written: File too large")
    assert len(process.lines) <= 2
    again = begin(*words, "--replay")
    again.send(npy(*BATCHES))
    assert again.end() == 0, again.err
    if where == "confidences":
        assert [row["confidence"] for row in rows_of("c.jsonl")] == expected()


def test_the_program_itself_is_stopped_by_a_signal(watched):
    process = subprocess.Popen(
        [*PROGRAM, "--state", "s.json", "--every", "60"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    process.stdin.write(npy(*BATCHES[:5]))
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"row 60  ")
    process.send_signal(signal.SIGTERM)
    with process.stdin:
        assert process.wait(LIMIT) == 143
    out, err = process.stdout.read().splitlines(), process.stderr.read().splitlines()
    process.stdout.close()
    process.stderr.close()
    assert re.fullmatch(rb"end  \d+ rows in \d batch(es)?, 0 events; at row \d+, \w+", out[-1])
    assert len(err) == 1
