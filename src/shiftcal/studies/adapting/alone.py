"""A study is one process, which starts others itself."""

from __future__ import annotations

import os

from shiftcal.errors import InputError

# What torchrun tells the processes that it starts.
_TOLD = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def check_alone() -> None:
    """Refuse to be one of several processes that torchrun has started.

    Raises:
        InputError: Saying what to do instead.
    """
    if not all(name in os.environ for name in _TOLD) or os.environ["WORLD_SIZE"] == "1":
        return
    raise InputError(
        f"a study must be run by one process; torchrun has started {os.environ['WORLD_SIZE']}, "
        "each of which would write the same files. Start it without torchrun: --workers, with "
        "[training] threads in the plan, trains several networks at once. One network is trained "
        "on several GPUs by: torchrun -m shiftcal adapt"
    )
