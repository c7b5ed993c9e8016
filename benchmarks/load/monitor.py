"""Load on ``shiftcal monitor``: stdin, HTTP and kills, on loopback.

``python benchmarks/load/monitor.py stdin|http|kill`` measures one part in less than five minutes
and adds it to ``results/monitor.json``. The monitor keeps its state on the disk, in the folder of
temporary files or ``$LOAD_FOLDER``. The clients are processes of their own, on the same two cores;
they need uvloop (``pip install uvloop``), which the service uses too if it is there. On a machine
that is busy with other programs, ``chrt -f 5`` before the command gives it the processors first.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))
from monitor import bank, outputs
from timing import circumstances

from shiftcal.monitoring import Monitor

RESULTS = Path(__file__).parent / "results"
ROWS, BATCHES = 4096, 1000  # of the Arrow stream
SECONDS, RATE, CLIENTS = 60, 2000, 40
KILLS, KILL_SECONDS = 12, 4
K = 10
WAITING = 100_000  # predictions


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "shiftcal", "monitor", str(folder / "monitor.json"), *words]


def is_first() -> bool:
    """Whether this runs before the programs of others."""
    return os.sched_getscheduler(0) != os.SCHED_OTHER


def resident(pid: int) -> float:
    """Megabytes of memory."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def processors() -> tuple[float, float]:
    """Seconds that all processors were busy, and that programs of this one were that ended."""
    ticks = list(map(int, Path("/proc/stat").read_text("utf-8").split("\n")[0].split()[1:9]))
    ended = os.times()
    return (sum(ticks) - ticks[3] - ticks[4]) / 100, ended.children_user + ended.children_system


def flush(folder: Path) -> list[float]:
    """Milliseconds of an fdatasync of 4 kB: median and 99 %."""
    with (folder / "flushed").open("wb") as file:
        times = []
        for _ in range(200):
            begin = time.perf_counter()
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
            times.append(1e3 * (time.perf_counter() - begin))
    return np.quantile(times, [0.5, 0.99]).round(2).tolist()


def stdin(folder: Path) -> dict[str, object]:
    """Rows per second of Arrow on standard input, from the first row to the end."""
    import pyarrow as pa

    z, _ = outputs(ROWS * 10, 1.2, 5)
    names = [f"logit_{i}" for i in range(K)]
    batches = [pa.record_batch(list(part.T), names) for part in np.split(z, 10)]
    found: dict[str, object] = {
        "real-time priority": is_first(),
        "rows": ROWS * BATCHES,
        "rows of a batch": ROWS,
    }
    with pa.ipc.new_stream(str(folder / "stream.arrow"), batches[0].schema) as writer:
        for i in range(BATCHES):
            writer.write(batches[i % 10])
    for name, words in {
        "stdin": [],
        "stdin, state": ["--state", str(folder / "a.state")],
        "stdin, state, confidences": [
            *("--state", str(folder / "b.state")), *("--confidences", str(folder / "b.jsonl"))
        ],
    }.items():  # fmt: skip
        with (folder / "stream.arrow").open("rb") as stream:
            program = subprocess.Popen(
                command(folder, "--json", *words), stdin=stream, stdout=subprocess.PIPE
            )
            first, last, memory = None, 0.0, []
            for line in program.stdout:
                last = time.perf_counter()
                if json.loads(line)["type"] == "window":
                    first = first or (last, json.loads(line)["row"])
                    end = last, json.loads(line)["row"]
                    if len(memory) * 100 * ROWS < end[1]:
                        memory.append(resident(program.pid))
        assert program.wait() == 0
        found[name] = (end[1] - first[1]) / (end[0] - first[0])
        found[f"{name}: memory, MB"] = [round(memory[1]), round(memory[-1])]
    return found


class Service:
    """A monitor that listens."""

    def __init__(self, folder: Path) -> None:
        words = ["--listen", "127.0.0.1:0", "--state", str(folder / "http.state")]
        words += ["--labels-follow", str(folder / "labels.jsonl")]
        self.program = subprocess.Popen(
            command(folder, *words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        self.port = 0
        while not self.port:
            line = self.program.stderr.readline().decode()
            assert line, "it did not start"
            if found := re.search(r"rows are taken at http://127.0.0.1:(\d+)", line):
                self.port = int(found[1])
        self.drain = threading.Thread(target=self.program.stderr.read, daemon=True)
        self.drain.start()


async def _client(
    port: int, number: int, begin: float, log: list[tuple[str, int, float]], end: float, rate: float
) -> int:
    """Requests of one row at fixed times; latency counts from the time a request was due."""
    rng = np.random.default_rng(number)
    rows = [json.dumps(row.round(4).tolist()) for row in outputs(50, 1.2, number)[0]]
    errors, sent = 0, 0
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return 1
    due = begin + rng.random() / rate
    while due < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        name = f"{number}-{sent}"
        body = f'{{"logits": {rows[sent % 50]}, "id": "{name}"}}'.encode()
        writer.write(
            b"POST /rows HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"content-length: (\d+)", head)[1])
            answer = json.loads(await reader.readexactly(length))
        except (OSError, asyncio.IncompleteReadError):
            return errors + 1
        if head.startswith(b"HTTP/1.1 200"):
            log.append((name, answer["row"], time.perf_counter() - due))
        else:
            errors += 1
        sent += 1
        due += 1 / rate
    writer.close()
    return errors


def client(port: int, seconds: float, seed: int) -> None:
    """The second process: prints what it sent and how long it took, as JSON."""

    async def run():
        log: list[tuple[str, int, float]] = []
        begin = time.perf_counter() + 0.2
        settings = (begin, log, begin + seconds, RATE / CLIENTS)
        errors = await asyncio.gather(
            *(_client(port, seed * CLIENTS + i, *settings) for i in range(CLIENTS))
        )
        print(json.dumps({"errors": sum(errors), "log": log}))

    import uvloop

    gc.disable()  # or its pauses would count as those of the service
    uvloop.run(run())


def _start_client(port: int, seconds: float, seed: int = 0) -> subprocess.Popen:
    words = [sys.executable, __file__, "client", str(port), str(seconds), str(seed)]
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def fill(port: int) -> None:
    """As many predictions as may wait, in requests of many rows."""
    connection = HTTPConnection("127.0.0.1", port)
    z = outputs(5000, 1.2, 3)[0].round(4).tolist()
    for i in range(WAITING // 5000):
        body = {"logits": z, "id": [f"before {i}-{j}" for j in range(5000)]}
        connection.request("POST", "/rows", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, len(answer.read()) > 5000) == (200, True)
    connection.close()


def http(folder: Path) -> dict[str, object]:
    """Latency at a fixed rate of requests of one row, with ids, labels awaited."""
    of_disk, before = flush(folder), processors()
    service = Service(folder)
    fill(service.port)  # or memory would grow until the oldest prediction is forgotten
    warm = _start_client(service.port, 5, 1)
    warm.communicate()
    sender = _start_client(service.port, SECONDS, 0)
    memory = []
    begin = time.perf_counter()
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.append(sender.communicate()[0]))
    reader.start()
    while reader.is_alive():
        reader.join(5)
        memory.append(round(resident(service.program.pid), 1))
    seconds = time.perf_counter() - begin
    ticks = Path(f"/proc/{service.program.pid}/stat").read_text("utf-8").split()[13:15]
    busy = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    service.program.send_signal(signal.SIGTERM)
    assert service.program.wait() == 143
    after, told = processors(), json.loads(output[0])
    others = (after[0] - before[0] - after[1] + before[1]) / (seconds + 5)
    times = np.array([t for _, _, t in told["log"]]) * 1e3
    p50, p90, p99, p999 = np.quantile(times, [0.5, 0.9, 0.99, 0.999]).round(2).tolist()
    return {
        "real-time priority": is_first(),
        "requests": len(times),
        "seconds": round(seconds, 1),
        "rate": round(len(times) / SECONDS),
        "errors": told["errors"],
        "p50, ms": p50,
        "p90, ms": p90,
        "p99, ms": p99,
        "p99.9, ms": p999,
        "most, ms": round(times.max(), 2),
        "flush of the disk, ms": of_disk,
        "processors busy with other programs": round(others, 2),
        "processor seconds of the service": round(busy, 1),
        "memory every 5 s, MB": memory,
    }


def kill(folder: Path) -> dict[str, object]:
    """Kills under load: rows that were acknowledged and are not in the state."""
    rng = np.random.default_rng(0)
    acknowledged: dict[str, int] = {}
    lost = twice = unanswered = 0
    for trial in range(KILLS):
        service = Service(folder)
        sender = _start_client(service.port, KILL_SECONDS + 1, 100 + trial)
        time.sleep(1.5 + (KILL_SECONDS - 2) * rng.random())
        service.program.kill()
        service.program.wait()
        told = json.loads(sender.communicate()[0])
        unanswered += told["errors"]
        new = {name: row for name, row, _ in told["log"]}
        twice += (
            len(set(new.values()) & set(acknowledged.values())) + len(new) - len(set(new.values()))
        )
        acknowledged |= new
        kept = waiting(folder)
        lost += sum(kept.get(name) != row for name, row in acknowledged.items())
    return {
        "kills": KILLS,
        "acknowledged rows": len(acknowledged),
        "lost": lost,
        "row numbers given twice": twice,
        "requests without an answer": unanswered,
    }


def waiting(folder: Path) -> dict[str, int]:
    """Rows by id, as a restarted monitor has them."""
    from shiftcal.cli.monitor import StateFile

    state = StateFile(folder / "http.state")
    found, _ = state.read()
    state.close()
    rows = found["running"]["ledger"]["waiting"]
    return {name: entry[0] for name, entry in rows.items()}


def main(part: str) -> None:
    place = os.environ.get("LOAD_FOLDER")  # such as /dev/shm, which takes no time to flush
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        Monitor(waiting=WAITING).fit(bank()).save(folder / "monitor.json")
        measured = {"stdin": stdin, "http": http, "kill": kill}[part](folder)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "monitor.json"
    results = json.loads(path.read_text("utf-8")) if path.exists() else {}
    results |= {**circumstances(), f"{part} in {place}" if place else part: measured}
    path.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    if sys.argv[1] == "client":
        client(int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    else:
        main(sys.argv[1])
