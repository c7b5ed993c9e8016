"""A study on a disk that is too small, again and again: ``python study_disk.py FOLDER``.

Run as :mod:`small_disk` is. It prints, as JSON, what was said at each size of the disk.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from small_disk import PAGE, _mount, way

# Pages of the disk while images are scored, and beyond what is used then while the rest is made.
SIZES = (2, 6, 12, 24, 40, 56, 64, 72, 80, 96, 112, 128, 160, 200, 400)
MORE = (0, 1, 3, 6, 10, 14, 18, 22, 24, 26, 28, 30, 34, 38, 80)


def play(folder):
    """What was said."""
    command = [*way(), sys.executable, __file__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _main(folder):
    from toy_study import toy_plan, write_data

    from shiftcal import studies
    from shiftcal.errors import FileError
    from shiftcal.studies import run
    from shiftcal.studies.catalog.base import Findings
    from shiftcal.studies.record import records_to_csv

    # Drawing takes seconds, and needs more room than all the rest.
    run.report = lambda *_, **__: Findings({}, {})
    disk = Path(folder, "disk")
    plan = toy_plan(write_data(Path(folder, "data")))
    said = []

    def tried(sizes):
        for size in sizes:
            _mount(disk, f"remount,size={size}")
            try:
                studies.reproduce(plan, disk / "run")
            except FileError as error:
                said.append(str(error))
            else:
                return

    try:
        _mount(disk, f"size={PAGE}")
        tried(pages * PAGE for pages in SIZES)
        for name in ("evaluated", "splits"):
            shutil.rmtree(disk / "run" / name)
        (disk / "run" / "records.csv").unlink()
        used = shutil.disk_usage(disk).used
        tried(used + pages * PAGE for pages in MORE)
        half = [file.name for file in disk.rglob("*.tmp")]
        text = records_to_csv(studies.Run(disk / "run").records)
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True, check=False)
    sys.stdout.write(json.dumps({"said": said, "half": half, "records": text}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
