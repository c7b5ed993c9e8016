"""``python -m shiftcal``: the program ``shiftcal`` where its script is not on the path."""

from __future__ import annotations

import sys

from shiftcal.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
