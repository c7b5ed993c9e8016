"""How the program that runs is called from where it was called."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_NAME = "shiftcal"


def pasted(words: Sequence[str]) -> str:
    """A command that begins with ``shiftcal``, as it works if pasted into a shell here.

    The script of an environment that is not activated is not found by its name, and
    ``python -m shiftcal`` is called so where there may be no script.
    """
    called = [*_program(), *words[1:]]
    return subprocess.list2cmdline(called) if os.name == "nt" else shlex.join(called)


def _program() -> list[str]:
    given = Path(sys.argv[0])
    if given.name == "__main__.py" and given.parent.name == _NAME:
        return [sys.executable, "-m", _NAME]
    if given.stem.lower() != _NAME or not given.is_file():
        return [_NAME]
    found = shutil.which(_NAME)
    return [_NAME] if found is not None and given.samefile(found) else [str(given)]
