"""What Ctrl-C leads to. Light, for it may come before anything else is imported."""

from __future__ import annotations

from shiftcal.cli._streams import complain

# What shells report for a program that was interrupted.
INTERRUPTED = 130
# And for one that was told to end.
TERMINATED = 143


def interrupted() -> int:
    """Say so on stderr, and give the exit status for it."""
    complain(
        "error",
        "interrupted. What is finished is kept; no file is left half-written under its name.",
    )
    return INTERRUPTED


def terminated() -> int:
    """The same for SIGTERM, where a command finishes what it is at."""
    complain("error", "terminated. What is finished is kept.")
    return TERMINATED
