"""Downloads that are killed, interrupted or run out of disk, and go on afterwards."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from toy_fetch import BODY, MD5, Seen, fetching_into, left
from toy_server import Turn, serving

from shiftcal.datasets import _room
from shiftcal.datasets.about import Download
from shiftcal.datasets.download import download
from shiftcal.errors import FileError


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving() as toy:
        yield toy


@pytest.fixture
def fetch(tmp_path):
    return fetching_into(tmp_path)


def test_too_little_room_is_said_before_anything_is_fetched(server, fetch, monkeypatch, tmp_path):
    room = SimpleNamespace(free=299_999)
    monkeypatch.setattr(_room.shutil, "disk_usage", lambda _: room)
    with pytest.raises(FileError, match=r"needs 300,000 bytes in .* has room for 299,999. Make"):
        fetch(server.offer("/data", Turn(BODY)))
    assert left(tmp_path) == b""


def test_ctrl_c_keeps_the_part(server, tmp_path):
    class Impatient(Seen):
        def moved(self, doing, done, total):
            if done > 100_000:
                raise KeyboardInterrupt

    source = Download(server.offer("/data", Turn(BODY)), "data.bin", MD5)
    with pytest.raises(KeyboardInterrupt):
        download(source, tmp_path, watch=Impatient())
    kept = left(tmp_path)
    assert kept == BODY[: len(kept)]
    assert download(source, tmp_path).read_bytes() == BODY
    assert server.ranges() == [None, f"bytes={len(kept)}-"]


FETCH = """
import sys
from pathlib import Path
from shiftcal.datasets.about import Download
from shiftcal.datasets.download import download
from shiftcal.errors import FileError

def fetch():
    try:
        return download(Download(sys.argv[1], "data.bin", sys.argv[2]), Path(sys.argv[3]))
    except FileError as error:
        print(error)
"""


def python(code, *words, before=(), **options):
    command = [*before, sys.executable, "-c", FETCH + code, *map(str, words)]
    environment = {**os.environ, "no_proxy": "*"}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        **options,
    )


def test_kill_9_in_the_middle_costs_nothing_that_had_come(server, fetch, tmp_path):
    release = threading.Event()
    url = server.offer("/data", Turn(BODY, cut_after=123_456, stall=release), Turn(BODY))
    partial = tmp_path / "data.bin.partial"
    with python("fetch()", url, MD5, tmp_path) as process:
        deadline = time.monotonic() + 30
        while not partial.exists() or partial.stat().st_size < 123_456:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    release.set()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "data.bin").exists()
    assert fetch(url).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=123456-"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_file_that_may_not_grow_is_told_and_resumed(server, fetch, tmp_path):
    url = server.offer("/data", Turn(BODY))
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (123_000, -1))\nfetch()"
    with python(limit, url, MD5, tmp_path) as process:
        told, errors = process.communicate()
    assert errors == ""
    assert "data.bin.partial could not be written: File too large" in told
    assert "Its 123,000 bytes are kept; make room, and the same command goes on" in told
    assert left(tmp_path) == BODY[:123_000]
    assert fetch(url).path.read_bytes() == BODY
    assert server.ranges() == [None, "bytes=123000-"]


MOUNT = 'mount -t tmpfs -o size=1m tmpfs {} && exec "$@"'


def small_disk(folder):
    """Words before a command that give it a disk of 1 MiB there, which vanishes with it."""
    words = ["unshare", "-rm", "sh", "-c", MOUNT.format(folder), "sh"]
    try:
        tried = subprocess.run([*words, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the program unshare")
    if tried.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {tried.stderr.decode().strip()}")
    return words


def test_a_full_disk_is_told_and_resumed_when_there_is_room(server, tmp_path):
    before = small_disk(tmp_path)
    body = np.random.default_rng(6).bytes(700_000)
    # No length is told: what is known beforehand is refused beforehand.
    turns = Turn(body, length=None), Turn(body)
    url = server.offer("/data", *turns)
    code = """
root = Path(sys.argv[3])
(root / "other").write_bytes(bytes(600_000))
assert fetch() is None
part = (root / "data.bin.partial").stat().st_size
print(part, sorted(p.name for p in root.iterdir()))
(root / "other").unlink()
import hashlib
print(hashlib.md5(fetch().read_bytes()).hexdigest())
"""
    digest = hashlib.md5(body).hexdigest()
    with python(code, url, digest, tmp_path, before=before) as process:
        told, errors = process.communicate()
    assert errors == ""
    message, rest, got = told.splitlines()
    assert "could not be written: No space left on device" in message
    assert "make room, and the same command goes on from there" in message
    size, _, files = rest.partition(" ")
    assert 100_000 < int(size) < 600_000
    assert files == "['data.bin.partial', 'data.bin.partial.json', 'other']"
    assert got == digest
    assert server.ranges() == [None, f"bytes={size}-"]
