"""Processes of ``shiftcal`` that start at once: forked from one that has imported everything.

``python monitor_server.py SOCKET MONITOR`` listens at a socket. Who connects sends JSON (words,
cwd, limit on the size of files) with three descriptors, and is sent the number of the process and,
when it has ended, its status as ``wait`` gives it. Such a process is one as any other: it is
signalled, killed and waited for; only its imports and its compiled code are there already.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys

import numpy as np


def _warmed(path):
    """Import and compile what a run needs."""
    import prometheus_client  # noqa: F401
    import pyarrow.ipc  # noqa: F401

    import shiftcal
    from shiftcal.cli import main  # noqa: F401

    told = shiftcal.load(path)
    update = told.feed(np.random.default_rng(0).standard_normal((500, told.n_classes_)))
    return update.selection, update.estimate


def _run(order, descriptors):
    """The command, in a process of its own; does not return."""
    status = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(order["cwd"])
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        if order["limit"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["limit"], order["limit"]))
        from shiftcal.cli.main import run

        status = run(order["words"])
        sys.stdout.flush()
    finally:
        os._exit(status)


def _keep(connection):
    """Start one process, and say when it has ended."""
    content, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    order = json.loads(content)
    child = os.fork()
    if child == 0:
        connection.close()
        _run(order, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(child.to_bytes(8, "little"))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    connection.sendall(code.to_bytes(8, "little", signed=True))


def _main(path, monitor):
    kept = _warmed(monitor)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(16)
        os.write(1, b"ready\n")
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                try:
                    _keep(connection)
                finally:
                    os._exit(0 if kept else 1)
            connection.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
