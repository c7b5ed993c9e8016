"""An export to a disk that is too small, again and again: ``python export_disk.py FOLDER``.

Run as :mod:`small_disk` is, with ``net.onnx``, its weights and ``map.json`` in the folder. It
prints, as JSON, what was said and what was left at each size.
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
    from shiftcal import export, load
    from shiftcal.errors import FileError

    disk, fitted = Path(folder, "disk"), load(Path(folder, "map.json"))
    errors, left = [], []
    _mount(disk, f"size={PAGE}")
    try:
        for pages in range(1, 20):
            _mount(disk, f"remount,size={pages * PAGE}")
            try:
                export.to_onnx(fitted, Path(folder, "net.onnx"), disk / "out.onnx")
            except FileError as error:
                errors.append(str(error))
                left.append(sorted(path.name for path in disk.iterdir()))
            else:
                break
        made = sorted(path.name for path in disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True, check=False)
    sys.stdout.write(json.dumps({"errors": errors, "left": left, "made": made}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
