"""Whether a small disk can be mounted, and what a folder holds."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

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


def files(folder):
    """Names and contents, as JSON can hold them."""
    found = sorted(f for f in Path(folder).rglob("*") if f.is_file())
    return {f.relative_to(folder).as_posix(): f.read_bytes().hex() for f in found}
