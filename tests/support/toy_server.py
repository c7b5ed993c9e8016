"""A real HTTP server on this machine whose answers can be made to fail."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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
