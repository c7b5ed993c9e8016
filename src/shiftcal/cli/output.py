"""The only writing to stdout and stderr: tables, errors, exit codes."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import typer

from shiftcal.errors import FileError, FitWarning, InputWarning, ShiftcalError
from shiftcal.registry import suggest

# --------------------------------------------------------------------------------------
# The only writing to stdout and stderr.
# --------------------------------------------------------------------------------------

# Line ends and what rich begins and ends bold print with are kept; anything else is judged.
_KEPT = re.compile(r"(\n|\x1b\[[01]m)|[^\n\x1b]+|\x1b")


def say(text: str) -> bool:
    """Write a result to stdout.

    Returns:
        Whether anybody is left to read it.

    Raises:
        FileError: If the disk behind it is full, or the like. A reader that has seen enough
            (``| head``) is no error.
    """
    return _write(sys.stdout, f"{text}\n")


def complain(kind: str, text: str) -> None:
    """Write one line such as ``warning: ...`` to stderr."""
    _write(sys.stderr, f"{kind}: {one_line(text)}\n")


def complain_at_length(text: str) -> None:
    """Write text of several lines to stderr."""
    _write(sys.stderr, text)


def one_line(text: str) -> str:
    """``text`` without line ends; what is not printable, as in odd file names, is escaped."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """``text`` with what is not printable, line ends too, as Python's literals have it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escaped_lines(text: str) -> str:
    """Lines of text, each :func:`escaped` but for bold print."""
    return _KEPT.sub(lambda found: found[1] or escaped(found[0]), text)


def _write(stream: TextIO | None, text: str) -> bool:
    if stream is None:  # closed by the caller: >&-
        return True
    # A narrow encoding, as LANG=C brings, must not turn a name into a crash.
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        _discard_the_rest(stream)
        return False
    except OSError as error:
        _discard_the_rest(stream)
        raise FileError(unwritten(error)) from error
    return True


def unwritten(error: OSError) -> str:
    """What is said when what was to be printed could not be."""
    return (
        f"stdout could not be written: {error.strerror or error}. Files named by -o are not "
        "concerned; only what was to be printed is lost."
    )


def _discard_the_rest(stream: TextIO) -> None:
    """Let what is still buffered vanish, or Python would fail on it again when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def warnings_as_lines() -> Iterator[list[str]]:
    """Print Python warnings as single lines, as they come; yields the list that collects them."""
    seen: list[str] = []

    def show(message: Warning | str, *_: object, **__: object) -> None:
        seen.append(one_line(str(message)))
        complain("warning", str(message))

    with warnings.catch_warnings():
        for kind in (FitWarning, InputWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = show
        yield seen


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show what is being done while it is done, on a terminal only."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(doing)):
        yield


@contextmanager
def stdout_kept_for_results() -> Iterator[None]:
    """Send to stderr what models and corruptions print meanwhile, in Python, in C or as children.

    Results are made after it, not within: what is a terminal is asked of stdout.
    """
    with _descriptor_lent(sys.stdout, sys.stderr), redirect_stdout(sys.stderr):
        yield


@contextmanager
def _descriptor_lent(stdout: TextIO | None, stderr: TextIO | None) -> Iterator[None]:
    """Let the system's stdout be its stderr, where the two are files of the system."""
    try:
        out, err = stdout.fileno(), stderr.fileno()  # type: ignore[union-attr]
        before = os.dup(out)
    except (AttributeError, OSError, ValueError):  # closed, or something in memory
        yield
        return
    os.dup2(err, out)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            stdout.flush()  # type: ignore[union-attr]
        _flush_c()
        os.dup2(before, out)
        os.close(before)


def _flush_c() -> None:
    """Have C write what it holds back, or that would come out later, behind the result."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # Windows has no such name
        ctypes.CDLL(None).fflush(None)


# --------------------------------------------------------------------------------------
# Aligned text. Nothing is cut off: a terminal's width folds cells, a pipe has none.
# --------------------------------------------------------------------------------------

# Wider than any row when there is no terminal, so that every row stays one line.
_NO_LIMIT = 100_000


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> str:
    """Columns under a header, bold on a terminal that has not been asked for plain text.

    Args:
        header: Name of every column.
        rows: Cells, as many a row as there are columns.
        right: Columns whose cells end flush, as numbers should.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in header:
        grid.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(escaped(cell)) for cell in row))
    terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(
        file=StringIO(),
        width=shutil.get_terminal_size().columns if terminal else _NO_LIMIT,
        force_terminal=terminal and "NO_COLOR" not in os.environ,
        legacy_windows=False,
    )
    if (
        console.measure(grid, options=console.options.update(width=_NO_LIMIT)).maximum
        > console.width
    ):
        grid.padding = (0, 1, 0, 0)
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and values, one pair a line."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name:<{width}}  {escaped(value)}".rstrip() for name, value in pairs)


def fraction(value: float | None) -> str:
    """A number with four decimals, or a dash where there is none."""
    return "-" if value is None else f"{value:.4f}"


def temperature(value: float | None) -> str:
    """A temperature with three decimals, or a dash where the map is no temperature."""
    return "-" if value is None else f"{value:.3f}"


def count_of(n: int, noun: str = "image") -> str:
    """``1 image``, ``1,024 images``."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


# --------------------------------------------------------------------------------------
# What Ctrl-C leads to. Light, for it may come before anything else is imported.
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# From whatever ended a command to a line on stderr and an exit status.
# --------------------------------------------------------------------------------------

DONE, GATE_FAILED, BAD_INPUT, OUR_BUG = 0, 1, 2, 3
_NO_COMMAND = re.compile(r"No such command '(.+?)'\.")
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
    text = _no_such_option(error) or _no_such_command(error, message())
    text = text or f"{message()}{_what_came(error)}"
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


def _no_such_command(error: Any, message: str) -> str:
    """What is said of an unknown command, with the nearest there is; empty if it is none."""
    found = _NO_COMMAND.match(message)
    commands = list(getattr(getattr(error.ctx, "command", None), "commands", ())) if found else []
    return f"no such command {found[1]!r}. {suggest(found[1], commands)}" if found else ""


def _usage(message: str, context: Any) -> str:
    command = getattr(context, "command_path", "shiftcal")
    text = f"{message[:1].lower()}{message[1:].rstrip('.')}"
    end = "" if text.endswith("?") else "."
    return f"{text}{end} See: {command} --help"


# --------------------------------------------------------------------------------------
# What a command has to say, before it is printed.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """The outcome of a command, for people and for programs.

    Attributes:
        command: Name of the command.
        document: What ``--json`` prints, but for what :func:`to_json` adds.
        text: What is printed without it.
        as_json: Which of the two is wanted.
        failed_gate: Why a gate such as ``--max-ece`` failed; empty if none did.
        bad_input: What part of the input could not be used; empty if all could.
    """

    command: str
    document: dict[str, Any]
    text: str
    as_json: bool
    failed_gate: str = ""
    bad_input: str = ""


@dataclass(frozen=True)
class Ended:
    """The outcome of a command that has printed its lines itself, as they came.

    Attributes:
        status: Its exit status; why it is not 0 has been said.
    """

    status: int


def to_json(report: Report, *, warnings: list[str]) -> str:
    """The one JSON document of a command, in ASCII.

    Numbers that are not finite become ``null``: JSON has no word for them.

    Args:
        report: What the command returned.
        warnings: Texts of the warnings given on the way.
    """
    document = {
        "shiftcal": version("shiftcal"),
        "command": report.command,
        **report.document,
        "warnings": warnings,
    }
    return json.dumps(_plain(document), indent=1, allow_nan=False)


def printable(value: Any) -> Any:
    """A document with its texts, names and paths :func:`escaped`, to make text for people of."""
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(printable, value))
    if isinstance(value, Path):
        return Path(escaped(str(value)))
    return escaped(value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --------------------------------------------------------------------------------------
# How the program that runs is called from where it was called.
# --------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------
# Progress of downloads.
# --------------------------------------------------------------------------------------


@contextmanager
def transfer() -> Iterator[Callable[[str, int, int | None], None]]:
    """A function to call with what is done and how much: a bar on a terminal, else lines."""
    if sys.stderr is None or not sys.stderr.isatty():
        last = ("", 0.0)

        def line(doing: str, done: int, total: int | None) -> None:
            nonlocal last
            if doing == last[0] and done != total and time.monotonic() - last[1] < 10:
                return
            last = doing, time.monotonic()
            complain_at_length(f"{doing}{_so_far(done, total)}\n")

        yield line
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress("{task.description}", *columns, console=Console(stderr=True)) as progress:
        tasks: dict[str, Any] = {}

        def bar(doing: str, done: int, total: int | None) -> None:
            if doing not in tasks:
                tasks[doing] = progress.add_task(escape(doing), total=total)
            progress.update(tasks[doing], completed=done, total=total)

        yield bar


def in_bytes(n: float) -> str:
    """A number of bytes as people read it, in powers of ten."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n:.0f} bytes"


def _so_far(done: int, total: int | None) -> str:
    if total is None:
        return f": {in_bytes(done)}" if done else ""
    return f": {in_bytes(done)} of {in_bytes(total)} ({100 * done // max(total, 1)} %)"
