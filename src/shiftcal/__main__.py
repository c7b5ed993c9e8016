"""The program ``shiftcal``, also as ``python -m shiftcal`` where its script is not on the path.

This file imports next to nothing: an interrupt while the rest is being imported is then an
interrupt like any other, with one line and status 130, not a traceback of Python's.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command that ``sys.argv`` names and return its exit status."""
    _keep_out_current_folder()
    try:
        from shiftcal.cli.main import run

        return run()
    except KeyboardInterrupt:
        from shiftcal.cli.output import interrupted

        return interrupted()


def _keep_out_current_folder() -> None:
    """Import no file of the current folder, which may hold data from anywhere, by accident.

    ``python -m`` puts that folder first on the path, and so does an empty entry of PYTHONPATH. The
    variables keep it off the path of every Python process that this one starts.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([entry for entry in entries if entry])
    # No pathlib: that could be a file of the current folder.
    try:
        here = os.getcwd()  # noqa: PTH109
    except FileNotFoundError:  # it was removed
        return
    installed = os.path.abspath(f"{__file__}/../..")  # noqa: PTH100
    if installed != here:
        sys.path[:] = [folder for folder in sys.path if folder not in ("", here)]


if __name__ == "__main__":
    sys.exit(main())
