"""From whatever ended a command to a line on stderr and an exit status."""

from __future__ import annotations

import errno
import platform
import traceback
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import typer

from shiftcal.cli._interrupt import interrupted
from shiftcal.cli._streams import complain, complain_at_length, unwritten
from shiftcal.errors import ShiftcalError

DONE, GATE_FAILED, BAD_INPUT, OUR_BUG = 0, 1, 2, 3
# Our own files are named when they cannot be written; what is left is what typer prints itself.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def status_of(error: BaseException) -> int:
    """Say on stderr what happened, and give the exit status for it."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return interrupted()
    if isinstance(error, SystemExit):
        # Both typer and rich exit so when the reader of a help text has seen enough.
        return DONE
    reason = _reason(error)
    if reason:
        complain("error", reason)
        return BAD_INPUT
    complain_at_length("".join(traceback.format_exception(error)))
    complain(
        "error",
        "this is a mistake in shiftcal, not in your input. Please report it with the lines above "
        f"(shiftcal {version('shiftcal')}, Python {platform.python_version()}).",
    )
    return OUR_BUG


def _reason(error: BaseException) -> str:
    """Why the input could not be used, or nothing if the input is not to blame."""
    if isinstance(error, ShiftcalError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this. Take fewer rows, or fewer bins, at a time."
    if isinstance(error, OSError):
        if error.errno in _FULL and not error.filename:
            return unwritten(error)
        return f"{error.filename or 'a file'}: {error.strerror or error}."
    # Usage errors: their class has moved between versions of typer, this method has not.
    message: Callable[[], str] | None = getattr(error, "format_message", None)
    return "" if message is None else _usage(message(), getattr(error, "ctx", None))


def _usage(message: str, context: Any) -> str:
    command = getattr(context, "command_path", "shiftcal")
    text = f"{message[:1].lower()}{message[1:].rstrip('.')}"
    end = "" if text.endswith("?") else "."
    return f"{text}{end} See: {command} --help"
