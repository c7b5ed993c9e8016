"""A process with a small disk of its own: ``python small_disk.py SCENARIO FOLDER [PAGES]``.

Run below ``unshare -rm`` where that works, since the disk then goes with the process; else by root.
It prints, as JSON, what happened.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

PAGE = 4096
_TRY = 'mount -t tmpfs -o size=64k tmpfs "$0" && umount "$0"'


@cache
def way():
    """What stands in front of the command; ``None`` if no disk can be had."""
    for before in (["unshare", "-rm"], []):
        if before and shutil.which(before[0]) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [*before, "sh", "-c", _TRY, folder]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return before
    return None


def play(scenario, folder, *arguments):
    """What a scenario says."""
    command = [*way(), sys.executable, __file__, scenario, str(folder), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def full(disk, pages):
    """A disk that is full, and then made larger."""
    from bank_process import build
    from exact_model import Exact

    from shiftcal.errors import ShiftcalError

    _mount(disk, f"size={int(pages) * PAGE}")
    first, second = Exact(), Exact()
    try:
        build(disk / "bank", first)
        error = None
    except ShiftcalError as raised:
        error = [type(raised).__name__, str(raised)]
    shards = len(list((disk / "bank").rglob("*.shard")))
    half = len(list((disk / "bank").rglob("*.tmp")))
    _mount(disk, "remount,size=4m")
    build(disk / "bank", second)
    return {
        "error": error,
        "shards": shards,
        "half": half,
        "first": first.seen,
        "second": second.seen,
        "files": files(disk / "bank"),
    }


def read_only(disk):
    """A cache on a disk that is read-only from the second bank on, with a damaged file on it."""
    from bank_process import build
    from exact_model import Exact

    _mount(disk, "size=4m")
    first, second = Exact(), Exact()
    build(disk.parent / "one", first, cache=disk / "cache")
    shards = sorted((disk / "cache").rglob("*.shard"))
    shards[0].unlink()
    content = bytearray(shards[1].read_bytes())
    content[-1] ^= 1  # whatever it was: the order of the shards goes by their keys
    shards[1].write_bytes(content)
    left = len(shards) - 2
    _mount(disk, "remount,ro")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        build(disk.parent / "two", second, cache=disk / "cache")
    return {
        "left": left,
        "first": first.seen,
        "second": second.seen,
        "warnings": [str(one.message) for one in caught],
        "one": files(disk.parent / "one"),
        "two": files(disk.parent / "two"),
    }


def files(folder):
    """Names and contents, as JSON can hold them."""
    found = sorted(f for f in Path(folder).rglob("*") if f.is_file())
    return {f.relative_to(folder).as_posix(): f.read_bytes().hex() for f in found}


def _mount(disk, options):
    disk.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], check=True)


def _main(scenario, folder, *arguments):
    disk = Path(folder, "disk")
    try:
        told = {"full": full, "read_only": read_only}[scenario](disk, *arguments)
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True, check=False)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    _main(*sys.argv[1:])
