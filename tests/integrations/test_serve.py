"""``shiftcal monitor --listen``: rows over HTTP, with a real server, client and disk."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ladder_data import STEPS, draw, make_bank
from monitor_streams import arrow, columns

import shiftcal as sc
from shiftcal.cli.monitor import StateFile
from shiftcal.cli.serve import MOST_BYTES
from shiftcal.monitoring import Monitor, Sliding

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
# Many starts of a program: `make integrations` runs them.
pytestmark = pytest.mark.slow

LIMIT = 60
STREAM = np.concatenate([draw(600, STEPS[0], seed=1)[0], draw(600, STEPS[3], seed=2)[0]])
JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
DISK = ["--state", "s.state", "--confidences", "c.jsonl"]


class Service:
    """A running service."""

    def __init__(self, folder, *words, token=None, **options):
        environment = {k: v for k, v in os.environ.items() if k != "SHIFTCAL_TOKEN"}
        environment |= {} if token is None else {"SHIFTCAL_TOKEN": token}
        command = [sys.executable, "-m", "shiftcal", "monitor", "sac.json", "--json"]
        self.program = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", *words], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip
        self.token, self.err = token, []
        while not (found := re.search(r"http://127.0.0.1:(\d+)/rows", "".join(self.err))):
            line = self.program.stderr.readline().decode()
            assert line, self.err
            self.err.append(line)
        self.port = int(found[1])

    def ask(self, method, path, body=None, kind=JSON, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        given = {} if body is None else {"Content-Type": kind}
        if self.token:
            given["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, body, {**given, **headers})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.headers["content-type"] == JSON:
            content = json.loads(content)
        return answer.status, content, answer.headers

    def post(self, value, **options):
        return self.ask("POST", "/rows", json.dumps(value), **options)[:2]

    def end(self, number=signal.SIGTERM):
        self.program.send_signal(number)
        out, err = self.program.communicate(timeout=LIMIT)
        return self.program.returncode, out.decode(), "".join(self.err) + err.decode()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("monitor") / "sac.json"
    window = Sliding(rows=200, blocks=5)
    Monitor("sac", estimator=None, window=window).fit(make_bank(600)).save(path)
    return path


@pytest.fixture
def start(saved, tmp_path):
    (tmp_path / "sac.json").write_bytes(saved.read_bytes())
    begun = []

    def call(*words, **options):
        begun.append(Service(tmp_path, *words, **options))
        return begun[-1]

    yield call
    for service in begun:
        if service.program.poll() is None:
            service.end(signal.SIGKILL)
        service.program.stdout.close()
        service.program.stderr.close()


def test_rows_are_answered_with_the_numbers_of_the_python_interface(start, tmp_path, saved):
    service, watch = start(*DISK), sc.load(saved)
    row = 0
    for i, part in enumerate([STREAM[:1], *np.split(STREAM[1:], [149, 300, 449, 1000])]):
        if i == 0:
            status, answer = service.post(part[0].tolist())
        elif i % 2:
            ids = list(range(len(part)))
            status, answer = service.post({"logits": part.tolist(), "at": i, "id": ids})
        else:
            half = len(part) // 2
            body = arrow(columns(part[:half]), columns(part[half:]))
            status, answer, _ = service.ask("POST", "/rows", body, ARROW)
        update = watch.feed(part)
        assert (status, answer["state"], answer["row"]) == (200, update.state, row)
        assert answer["confidence"] == update.confidence.tolist()
        assert answer["predicted"] == update.predicted.tolist()
        row = update.rows
    status, out, err = service.end()
    assert (status, json.loads(out.splitlines()[-1])["by"]) == (143, "SIGTERM")
    assert "Traceback" not in err
    confidences = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [line["row"] for line in confidences] == list(range(1200))
    again = start(*DISK)
    assert again.ask("GET", "/readyz")[1] == {"ready": True, "state": watch.state, "rows": 1200}


def test_no_answer_waits_for_an_acknowledgement_of_its_first_packet(start):
    connection = http.client.HTTPConnection("127.0.0.1", start().port, timeout=LIMIT)
    times = []
    for row in STREAM[:30]:
        begin = time.perf_counter()
        connection.request("POST", "/rows", json.dumps(row.tolist()), {"Content-Type": JSON})
        assert connection.getresponse().read()
        times.append(time.perf_counter() - begin)
    connection.close()
    assert min(times[-20:]) < 0.035  # Linux delays acknowledgements by 40 ms


def bad_requests():
    row = [0.5] * 6
    nan = json.dumps([[float("nan")] * 6])
    yield "POST", "/rows", json.dumps(row), "text/plain", {}, 415, "Content-Type must be"
    yield "POST", "/rows", "[1, 2", JSON, {}, 400, "delimiter"
    yield "POST", "/rows", "[1, 2]", JSON, {}, 400, "must have 6 columns"
    yield "POST", "/rows", nan, JSON, {}, 400, "must be finite"
    yield "POST", "/rows", '{"x": 1}', JSON, {}, 400, "object with either 'logits'"
    yield "POST", "/rows", "[" * 20_000, JSON, {}, 400, ""
    yield "POST", "/rows", b"\xff\xff\xff\xff", ARROW, {}, 400, ""
    yield "POST", "/rows", b"", ARROW, {}, 400, "must have a record batch"
    yield "POST", "/rows", b"", JSON, {"Content-Length": str(MOST_BYTES + 1)}, 413, "bytes at most"
    yield "GET", "/rows", None, JSON, {}, 405, ""
    yield "GET", "/nowhere", None, JSON, {}, 404, ""


def test_a_bad_request_is_refused_and_changes_nothing(start, tmp_path):
    service = start(*DISK)
    for method, path, body, kind, headers, status, words in bad_requests():
        found, content, _ = service.ask(method, path, body, kind, **headers)
        assert found == status, content
        if words:
            assert words in content["error"]
    assert service.ask("GET", "/readyz")[1]["rows"] == 0
    assert service.post(STREAM[:3].tolist())[0] == 200
    metrics = service.ask("GET", "/metrics")[1].decode()
    assert 'shiftcal_requests_total{status="400"} 7.0' in metrics
    assert "shiftcal_malformed_batches_total 7.0" in metrics
    assert "shiftcal_rows_total 3.0" in metrics
    assert "Traceback" not in service.end()[2]


def test_a_large_body_is_refused_with_or_without_length(start):
    service = start()
    body = b"1," * 10_000_000
    for sent in (body, (body[i : i + 1_000_000] for i in range(0, len(body), 1_000_000))):
        assert service.ask("POST", "/rows", sent)[0] == 413
    assert service.ask("GET", "/healthz")[0] == 200


def test_a_token_opens_rows_and_metrics_and_is_never_printed(start):
    token = "correct horse battery"
    service = start(token=token)
    assert service.post(STREAM[:2].tolist())[0] == 200
    assert service.ask("GET", "/metrics")[0] == 200
    for given in ("", "Bearer wrong", f"bearer {token}", f"Bearer {token}x"):
        for method, path in (("POST", "/rows"), ("GET", "/metrics")):
            status, _, headers = service.ask(method, path, "[1]", Authorization=given)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert service.ask("GET", "/healthz", Authorization="")[0] == 200
    status, out, err = service.end()
    assert token not in out + err


def test_requests_of_many_clients_are_all_in_the_stream_once(start, tmp_path, saved):
    service = start(*DISK)

    def send(part):
        return [service.post({"logits": row.tolist(), "id": i}) for i, row in part]

    parts = [list(enumerate(STREAM))[i::8] for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = [answer for found in pool.map(send, parts) for answer in found]
    assert {status for status, _ in answers} == {200}
    rows = [answer["row"] for _, answer in answers]
    assert sorted(rows) == list(range(1200))
    ids = [i for part in parts for i, _ in part]
    stored = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert {line["row"]: line["id"] for line in stored} == dict(zip(rows, ids, strict=True))
    order = [i for _, i in sorted(zip(rows, ids, strict=True))]
    update = sc.load(saved).feed(STREAM[order])
    assert [line["confidence"] for line in stored] == update.confidence.tolist()


def test_when_the_disk_is_slower_than_the_rows_requests_are_turned_away(start):
    # Nobody reads the confidences on stdout, so that no commit ends.
    service = start("--confidences", "-")
    # 30,000 rows each; three wait, and up to three are in the commit that does not end
    sent = [STREAM.tolist() * 25] * 8
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(service.post, rows) for rows in sent]
        until = time.monotonic() + LIMIT
        while service.ask("GET", "/readyz")[0] == 200:
            assert time.monotonic() < until
            if sum(one.done() for one in waiting) > 1:
                break
            time.sleep(0.05)
        status, content, headers = service.ask("POST", "/rows", json.dumps(sent[0]))
        assert (status, headers["retry-after"]) == (503, "1"), content
        assert service.ask("GET", "/healthz")[0] == 200
        reader = threading.Thread(target=service.program.stdout.read)
        reader.start()
        answers = [one.result(LIMIT) for one in waiting]
    statuses = [status for status, _ in answers]
    assert set(statuses) == {200, 503}
    assert service.ask("GET", "/readyz")[1]["rows"] == 30_000 * statuses.count(200)
    service.program.terminate()
    reader.join(LIMIT)


def test_slow_clients_are_cut_off(start):
    service = start()
    head = b"POST /rows HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    begin = time.monotonic()
    connections = []
    for text in (b"", head, head + b"Content-Length: 100\r\n\r\n[1,"):
        connections.append(socket.create_connection(("127.0.0.1", service.port)))
        connections[-1].sendall(text)
    answers = []
    for connection in connections:
        connection.settimeout(LIMIT)
        try:
            answers.append(connection.recv(1000))
        except ConnectionResetError:
            answers.append(b"")
        connection.close()
    assert 5 < time.monotonic() - begin < 30
    assert answers[:2] == [b"", b""]
    assert answers[2].startswith(b"HTTP/1.1 408")
    endless = socket.create_connection(("127.0.0.1", service.port))
    with endless, pytest.raises(OSError, match=r"."):
        endless.sendall((b"X-Header: " + b"x" * 1000 + b"\r\n") * 10_000)
    assert service.post(STREAM[:1].tolist())[0] == 200
    for text in (head + b"Content-Length: 100\r\n\r\n[1,", b"\x16\x03\x01 TLS"):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(text)  # and goes away
    assert service.post(STREAM[:1].tolist())[0] == 200
    assert len(service.end()[2].splitlines()) == 2  # where it listens, and how it ended


@pytest.mark.parametrize("ids", [True, False])
def test_kill_9_under_load_loses_no_acknowledged_row(start, tmp_path, ids):
    words = [*DISK, *["--labels-follow", "labels.jsonl"] * ids]
    acknowledged = {}

    def send(service, number):
        i = 0
        while True:
            row = STREAM[(7 * number + i) % 1200]
            name = f"{service.port}-{number}-{i}"
            try:
                status, answer = service.post({"logits": row.tolist(), "id": name})
            except OSError:
                return
            except http.client.HTTPException:
                return
            if status == 200:
                acknowledged[answer["row"]] = name, answer["confidence"][0]
            i += 1

    for seconds in (0.3, 0.7, 1.1):
        service = start(*words)
        before = len(acknowledged)
        senders = [threading.Thread(target=send, args=(service, n)) for n in range(6)]
        for sender in senders:
            sender.start()
        until = time.monotonic() + LIMIT
        while len(acknowledged) < before + 20 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(seconds)
        service.program.kill()
        service.program.wait(LIMIT)
        for sender in senders:
            sender.join(LIMIT)
    last = start(*words)
    rows = last.ask("GET", "/readyz")[1]["rows"]
    assert last.end()[0] == 143
    stored = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [line["row"] for line in stored] == list(range(rows))
    assert len(acknowledged) >= 60
    for row, (name, confidence) in acknowledged.items():
        assert (stored[row]["id"], stored[row]["confidence"]) == (name, confidence)
    state = StateFile(tmp_path / "s.state")
    waiting = state.read()[0]["running"]["ledger"]["waiting"]
    state.close()
    assert len(waiting) == (rows if ids else 0)
    if ids:
        assert all(waiting[name][0] == row for row, (name, _) in acknowledged.items())


@pytest.mark.skipif(os.name == "nt", reason="needs a limit of file sizes")
def test_a_full_disk_acknowledges_nothing_it_cannot_keep(start, tmp_path):
    import resource

    size = 100_000
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))}
    service = start(*DISK, **limit)
    acknowledged = 0
    for part in np.split(STREAM, 40):
        try:
            status, answer = service.post(part.tolist())
        except OSError:
            break
        if status != 200:
            assert (status, "could not be stored" in answer["error"]) == (503, True)
            break
        acknowledged += len(part)
    _, err = service.program.communicate(timeout=LIMIT)
    assert service.program.returncode == 2
    assert b"could not be written" in err
    assert b"Traceback" not in err
    assert 0 < acknowledged < 1200
    again = start(*DISK)
    assert again.ask("GET", "/readyz")[1]["rows"] == acknowledged


def test_labels_reach_a_service_that_has_no_requests(start, tmp_path):
    service = start("--labels-follow", "labels.jsonl", "--every", "100")
    ids = [f"a{i}" for i in range(300)]
    service.post({"logits": STREAM[:300].tolist(), "id": ids})
    predicted = STREAM[:300].argmax(axis=1).tolist()
    with (tmp_path / "labels.jsonl").open("w") as file:
        for name, label in zip(ids, predicted, strict=True):
            file.write(json.dumps({"id": name, "label": label}) + "\n")
    until = time.monotonic() + LIMIT
    while b"shiftcal_labels_total 300.0" not in service.ask("GET", "/metrics")[1]:
        assert time.monotonic() < until
        time.sleep(0.05)
    lines = map(json.loads, service.end()[1].splitlines())
    line = next(line for line in lines if line["type"] == "labels")
    assert (line["labelled"], line["accuracy"]) == (300, 1.0)


def test_a_gate_ends_the_service(start):
    service = start("--fail-on", "shift")
    for part in np.split(STREAM, 12):
        try:
            if service.post(part.tolist())[0] != 200:
                break
        except OSError:
            break
    _, err = service.program.communicate(timeout=LIMIT)
    assert service.program.returncode == 1
    assert b"gate failed: shift-began" in err
