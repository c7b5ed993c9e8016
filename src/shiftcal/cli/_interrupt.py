"""What Ctrl-C leads to. Light, for it may come before anything else is imported."""

from __future__ import annotations

from shiftcal.cli._streams import complain

# What shells report for a program that was interrupted.
INTERRUPTED = 130


def interrupted() -> int:
    """Say so on stderr, and give the exit status for it."""
    complain(
        "error",
        "interrupted. What is finished is kept; no file is left half-written under its name.",
    )
    return INTERRUPTED
