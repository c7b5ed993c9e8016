"""``shiftcal monitor`` as a process, fed and watched by a test."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

LIMIT = 120.0
THREADS = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
_SERVER = Path(__file__).with_name("monitor_server.py")


class Server:
    """A server of processes, see ``monitor_server.py``.

    Args:
        folder: For its socket.
        monitor: A saved monitor to warm up with.
    """

    def __init__(self, folder, monitor):
        self.path = str(folder / "s")  # short, as paths of sockets must be
        self.process = subprocess.Popen(
            [sys.executable, _SERVER, self.path, monitor],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **THREADS},
        )
        assert self.process.stdout.readline() == b"ready\n"

    def begin(self, *words, **options):
        """A process of ``shiftcal monitor``, with the options of :class:`MonitorCommand`."""
        return MonitorCommand(self.path, ["monitor", *map(str, words)], **options)

    def close(self):
        """End the server."""
        self.process.terminate()
        self.process.wait(LIMIT)
        self.process.stdout.close()


class MonitorCommand:
    """A running command; what it prints is collected as it comes.

    Args:
        path: Socket of the server.
        words: The command.
        cwd: Its folder.
        stdin: Descriptor of its input; a pipe unless told.
        stdout: Of its output; collected unless told.
        limit: Largest size that a file it writes may have.
    """

    def __init__(self, path, words, *, cwd, stdin=None, stdout=None, limit=None):
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        if stdout is not None:
            os.close(out_end)
            out_end = os.dup(stdout)
        in_end, self._stdin = os.pipe() if stdin is None else (os.dup(stdin), None)
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(LIMIT)
        self._connection.connect(path)
        order = json.dumps({"words": words, "cwd": str(cwd), "limit": limit}).encode()
        socket.send_fds(self._connection, [order], [in_end, out_end, err_end])
        for end in (in_end, out_end, err_end):
            os.close(end)
        self.pid = int.from_bytes(self._connection.recv(8), "little")
        self.status = None
        self.out, self.err = [], []
        self._threads = [
            threading.Thread(target=self._collect, args=pair, daemon=True)
            for pair in ((out, self.out), (err, self.err))
        ]
        self._threads.append(threading.Thread(target=self._await, daemon=True))
        for thread in self._threads:
            thread.start()

    def _collect(self, descriptor, lines):
        with open(descriptor, encoding="utf-8") as stream:  # noqa: PTH123
            for line in stream:
                lines.append(line.rstrip("\n"))  # at once, for those who wait

    def _await(self):
        with self._connection:
            code = self._connection.recv(8)
        self.status = int.from_bytes(code, "little", signed=True)

    @property
    def lines(self):
        """What it printed so far, with ``--json``."""
        return [json.loads(line) for line in list(self.out)]

    def send(self, content):
        """Write to its standard input; a process that is gone by then is no error."""
        with suppress(BrokenPipeError):
            while content:
                content = content[os.write(self._stdin, content) :]

    def signal(self, number):
        """Send a signal, if it has not ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait_for(self, condition):
        """Wait until something is so while it runs."""
        until = time.monotonic() + LIMIT
        while not condition():
            assert self.status is None, (self.status, self.out, self.err)
            assert time.monotonic() < until, (self.out, self.err)
            time.sleep(0.005)

    def await_end(self):
        """Wait until it has ended, of itself."""
        until = time.monotonic() + LIMIT
        while self.status is None:
            assert time.monotonic() < until, (self.out, self.err)
            time.sleep(0.005)

    def end(self, number=None):
        """Close its input, or send a signal; gives the status when it has ended."""
        if number is None:
            self._close_input()
        else:
            self.signal(number)
        for thread in self._threads:
            thread.join(LIMIT)
            assert not thread.is_alive(), (self.out, self.err)
        self._close_input()
        return self.status

    def _close_input(self):
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
