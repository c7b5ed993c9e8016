"""From whatever ended a command to a line on stderr and an exit status."""

from __future__ import annotations

import errno
import platform
import re
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import version
from typing import Any

import typer

from shiftcal.cli._interrupt import interrupted
from shiftcal.cli._streams import complain, complain_at_length, unwritten
from shiftcal.errors import ShiftcalError

DONE, GATE_FAILED, BAD_INPUT, OUR_BUG = 0, 1, 2, 3
# Of several near words the first is the nearest.
_SEVERAL = re.compile(r"(Did you mean '[^']+')(?:, '[^']+')+\?$")
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
    if message is None:
        return ""
    text = _no_such_option(error) or f"{message()}{_what_came(error)}"
    return _usage(text, getattr(error, "ctx", None))


def _what_came(error: BaseException) -> str:
    """The value that cannot be used, which typer does not say."""
    told: Callable[[], list[dict[str, Any]]] | None = getattr(error.__cause__, "errors", None)
    return f"; got {told()[0]['input']!r}" if told is not None and told() else ""


def _no_such_option(error: Any) -> str:
    """What is said of a mistyped option, with the nearest there is; empty if it is none."""
    if not hasattr(error, "possibilities"):
        return ""
    options = [
        name
        for parameter in getattr(getattr(error.ctx, "command", None), "params", [])
        for name in getattr(parameter, "opts", [])
        if name.startswith("--")
    ]
    near = get_close_matches(error.option_name, [*options, "--help"], n=1)
    # Another program's word for it, as --out for --output, is nearest by its beginning.
    near = near or [name for name in options if name.startswith(error.option_name)][:1]
    return f"no such option: {error.option_name}" + (f". Did you mean {near[0]!r}?" if near else "")


def _usage(message: str, context: Any) -> str:
    command = getattr(context, "command_path", "shiftcal")
    text = f"{message[:1].lower()}{message[1:].rstrip('.')}"
    text = _SEVERAL.sub(r"\1?", text)
    end = "" if text.endswith("?") else "."
    return f"{text}{end} See: {command} --help"
