"""The program ``shiftcal``, also as ``python -m shiftcal`` where its script is not on the path.

This file imports next to nothing: an interrupt while the rest is being imported is then an
interrupt like any other, with one line and status 130, not a traceback of Python's.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command that ``sys.argv`` names and return its exit status."""
    try:
        from shiftcal.cli.main import run

        return run()
    except KeyboardInterrupt:
        from shiftcal.cli._interrupt import interrupted

        return interrupted()


if __name__ == "__main__":
    sys.exit(main())
