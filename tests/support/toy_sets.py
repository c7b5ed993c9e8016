"""A data set of toys that nobody published: its record, copies on disk and in archives."""

from __future__ import annotations

import hashlib
import io
import re
import socket
import sys
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from photos import photo
from PIL import Image

from shiftcal.datasets.catalog import About, Download
from shiftcal.datasets.image_files import FileImages
from shiftcal.errors import MissingData
from shiftcal.registry import DATA_SETS


def toys(root, *, split="train"):
    """Toys from ``<split>/<class>/<file>``."""
    folder = Path(root, "toys", split) if Path(root, "toys").is_dir() else Path(root, split)
    if not folder.is_dir():
        raise MissingData(f"{folder} does not exist.")
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    files = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*.png"))
    labels = [classes.index(Path(file).parent.name) for file in files]
    return FileImages(folder, files, name=f"Toys {split}", labels=labels, classes=classes)


TOYS = About(
    load=toys,
    title="Toys",
    n_classes=3,
    homepage="https://example.org/toys",
    licence="free",
    counts={"train": 12, "test": 6},
    balanced=True,
    downloads=(Download("https://example.org/toys.tar.gz", size=1),),
)
TOYS_BY_HAND = replace(
    TOYS, title="Other Toys", downloads=(), by_hand="Ask the maker of the toys for them."
)
ENTRIES = {"toys": "toy_sets:TOYS", "toys-by-hand": "toy_sets:TOYS_BY_HAND"}


def use_toys(monkeypatch):
    """Have the toys in the place of the published data sets."""
    monkeypatch.setattr(DATA_SETS, "entries", ENTRIES)


def about_toys(monkeypatch, **facts):
    """Have other facts known of the toys."""
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "TOYS", replace(module.TOYS, **facts))


def write_toys(root):
    """A complete copy: ``toys/<split>/<class>/<file>``."""
    for split, n in (("train", 4), ("test", 2)):
        for name in ("ball", "car", "doll"):
            folder = Path(root, "toys", split, name)
            folder.mkdir(parents=True)
            for index in range(n):
                Image.fromarray(photo(12, 10)).save(folder / f"{index}.png")
    return Path(root)


def toy_archive(folder):
    """The toys as a ``.tar.gz``: its bytes."""
    write_toys(folder)
    with tarfile.open(folder / "made.tar.gz", "w:gz") as made:
        made.add(folder / "toys", "toys")
    return (folder / "made.tar.gz").read_bytes()


def source_of(url, body):
    """The facts of a file with that content."""
    return Download(url, f"md5:{hashlib.md5(body).hexdigest()}")


NOISE = np.random.default_rng(2).bytes(50_000)
FILES = {"set/a/1.bin": NOISE, "set/b/2.bin": b"two", "set/read me": b""}
MODES = {".tar": "w", ".tar.gz": "w:gz"}


def entry(name, kind=tarfile.REGTYPE, *, link="", size=0, mode=0o644):
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size, made.mode = kind, link, size, mode
    return made


def tar(path, entries, mode="w"):
    """A tar of ``(entry, content)``."""
    with tarfile.open(path, mode) as opened:
        for made, content in entries:
            made.size = len(content)
            opened.addfile(made, io.BytesIO(content))
    return path


def zipped(path, entries, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as opened:
        for made, content in entries:
            opened.writestr(made, content)
    return path


def archive_of(folder, end, files=FILES):
    path = folder / f"data{end}"
    if end == ".zip":
        return zipped(path, files.items())
    return tar(path, [(entry(name), content) for name, content in files.items()], MODES[end])


def content(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@dataclass
class Turn:
    """One answer: by default the whole body, or the part asked for, as an honest server does."""

    body: bytes = b""
    status: int = 200
    headers: tuple = ()
    cut_after: int | None = None  # bytes of the body after which the connection is cut
    ranges: bool = True  # whether Range is heeded
    length: int | None = -1  # what Content-Length says; -1 is the truth, None leaves it out
    chunked: bool = False
    stall: threading.Event | None = None  # waits for it after `cut_after` bytes


class ToyServer:
    """Answers with the turns of a path, one after the other; the last is repeated."""

    def __init__(self):
        self.turns = {}
        self.asked = []

    def offer(self, path, *turns):
        self.turns[path] = list(turns)
        return f"{self.address}{path}"

    def ranges(self):
        return [headers.get("Range") for _, headers in self.asked]

    def turn(self, path):
        turns = self.turns[path]
        return turns.pop(0) if len(turns) > 1 else turns[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        toy = self.server.toy
        toy.asked.append((self.path, dict(self.headers)))
        turn = toy.turn(self.path)
        body, first = turn.body, self._first_byte(turn)
        if turn.status != 200:
            return self._head(turn, turn.status, len(body)) or self._send(turn, body)
        if first and first >= len(body):
            told = ("Content-Range", f"bytes */{len(body)}")
            return self._head(turn, 416, 0, told)
        if first:
            told = ("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
            self._head(turn, 206, len(body) - first, told)
            return self._send(turn, body[first:])
        self._head(turn, 200, len(body))
        return self._send(turn, body)

    def _first_byte(self, turn):
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        return int(found[1]) if found and turn.ranges else 0

    def _head(self, turn, status, length, *more):
        self.send_response(status)
        if turn.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif turn.length is not None:
            self.send_header("Content-Length", str(length if turn.length < 0 else turn.length))
        for key, value in (*turn.headers, *more):
            self.send_header(key, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def _send(self, turn, body):
        part = body if turn.cut_after is None else body[: turn.cut_after]
        try:
            if turn.chunked:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                if part == body:
                    self.wfile.write(b"0\r\n\r\n")
            else:
                self.wfile.write(part)
            self.wfile.flush()
            if turn.stall is not None:
                turn.stall.wait(20)
        except (BrokenPipeError, ConnectionResetError):
            pass


@contextmanager
def serving():
    """A :class:`ToyServer` while the block runs."""
    toy = ToyServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.toy = toy
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    toy.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield toy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def unused_port():
    """A port of this machine on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
