"""A training on a disk that is too small, again and again: ``python training_disk.py FOLDER``.

Run as :mod:`small_disk` is. It prints, as JSON, what was said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from small_disk import PAGE, _mount, way


def play(folder):
    """What was said."""
    command = [*way(), sys.executable, __file__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _main(folder):
    from training_process import same, training

    from shiftcal.errors import FileError

    whole, _ = training(Path(folder, "whole"))
    disk = Path(folder, "disk")
    errors, begun, half = [], [], 0
    _mount(disk, f"size={PAGE}")
    try:
        for pages in range(1, 40):
            _mount(disk, f"remount,size={pages * PAGE}")
            first = []
            try:
                objective, done = training(disk / "run", before=first.append)
            except FileError as error:
                errors.append(str(error))
                half += len(list(disk.rglob("*.tmp")))
                begun += first[:1]
            else:
                begun.append(done.resumed_at)
                break
        files = (Path(folder, "whole", "history.csv"), disk / "run" / "history.csv")
        one, two = (file.read_text() for file in files)
        told = {"same": same(whole, objective), "history": one == two}
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True, check=False)
    sys.stdout.write(json.dumps({"errors": errors, "begun": begun, "half": half, **told}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
