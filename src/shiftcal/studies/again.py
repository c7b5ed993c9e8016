"""The command that makes a run whole again."""

from __future__ import annotations

import shlex
from pathlib import Path

PLAN = "plan.toml"


def repair(folder: Path) -> str:
    """The command line by which everything that a run lacks is made, and nothing else.

    Args:
        folder: Of the run; if its plan is not there, the command says ``PLAN`` for it.
    """
    plan = folder / PLAN
    named = shlex.quote(str(plan)) if plan.exists() else "PLAN"
    return f"shiftcal reproduce {named} -o {shlex.quote(str(folder))}"
