"""Processes that hold locks: ``python holder.py guest|alone|claim FOLDER [KEY]``.

Prints ``ready`` when it has what it wants, and then does what it is told, a line at a time:
``last`` asks whether the guest is the last; the end of the input, or ``leave``, lets go.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def holder(*arguments):
    """Such a process, ready; killed at the end of the block."""
    process = begun(*arguments)
    try:
        assert process.stdout.readline().strip() == "ready"
        yield process
    finally:
        gone(process)


def gone(process):
    """Kill it, and close what it was spoken to by."""
    process.kill()
    process.wait(20)
    for stream in (process.stdin, process.stdout):
        stream.close()


def begun(*arguments):
    """Such a process, which need not be ready."""
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tell(process, line):
    """Tell it something; what it answers."""
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def _main(kind, folder, key=""):
    from shiftcal.scoring.claims import Claims
    from shiftcal.scoring.sharing import alone_in, guest_of

    if kind == "claim":
        claims = Claims(Path(folder))
        _say("ready" if claims.take(key) else "taken")
        sys.stdin.readline()
        claims.release(key)
        return
    with (guest_of if kind == "guest" else alone_in)(Path(folder)) as held:
        _say("ready")
        while (line := sys.stdin.readline().strip()) == "last":
            _say(held.is_last())
        del line


def _say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
