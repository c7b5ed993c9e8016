"""The only writing to stdout and stderr: results, tables, progress, errors and exit statuses."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import re
import shlex
import shutil
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from shiftcal.errors import FileError, FitWarning, InputWarning, ShiftcalError, suggest
from shiftcal.progress import tracking, want_bars

if TYPE_CHECKING:
    from shiftcal.surrogates import SetSummary

DONE, GATE_FAILED, BAD_INPUT, OUR_BUG = 0, 1, 2, 3
# As shells report SIGINT and SIGTERM.
INTERRUPTED, TERMINATED = 130, 143


@dataclass(frozen=True)
class Report:
    """The outcome of a command.

    Attributes:
        document: What ``--json`` prints.
        text: What is printed without it.
        failed_gate: Why a gate such as ``--max-ece`` failed; empty if none did.
        bad_input: Which part of the input could not be used; empty if all could.
    """

    document: dict[str, Any]
    text: str
    failed_gate: str = ""
    bad_input: str = ""


# --- stdout and stderr ----------------------------------------------------------------------------


class _Verbosity:
    """-1 for errors only, 0, or 1 for details."""

    level = 0


def set_verbosity(level: int) -> None:
    """Say more (1), as usual (0), or errors only (-1)."""
    _Verbosity.level = level
    want_bars(level >= 0)


def say(text: str) -> bool:
    """Write a result to stdout; False if nobody reads it any more (``| head``), which is no error.

    Raises:
        FileError: If the disk behind it is full, or the like.
    """
    return _write(sys.stdout, f"{text}\n")


def complain(kind: str, text: str) -> None:
    """Write one line such as ``warning: ...`` to stderr; with --quiet, errors only."""
    if _Verbosity.level < 0 and kind in ("progress", "note", "warning"):
        return
    _write(sys.stderr, f"{kind}: {one_line(text)}\n")


def complain_at_length(text: str) -> None:
    """Write text of several lines to stderr."""
    _write(sys.stderr, text)


def one_line(text: str) -> str:
    """``text`` on one line, with characters that cannot be printed escaped."""
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """``text`` with characters that cannot be printed, line ends too, as Python escapes them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escaped_lines(text: str) -> str:
    """Lines of text, each :func:`escaped` except for the codes of bold print."""
    kept = r"(\n|\x1b\[[01]m)|[^\n\x1b]+|\x1b"
    return re.sub(kept, lambda found: found[1] or escaped(found[0]), text)


def _write(stream: TextIO | None, text: str) -> bool:
    if stream is None:  # closed by the caller: >&-
        return True
    encoding = stream.encoding or "utf-8"  # may be narrow, as with LANG=C
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        # Discard what is buffered, or Python would fail on it again at its exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            return False
        raise FileError(
            f"stdout could not be written: {error.strerror or error}. Output files are complete."
        ) from error
    return True


@contextmanager
def warnings_as_lines() -> Iterator[list[str]]:
    """Print Python warnings as single lines; yields the list that collects them."""
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
def stdout_kept_for_results() -> Iterator[None]:
    """Send to stderr what models and corruptions print meanwhile, in this or a child process."""
    with ExitStack() as stack:
        with suppress(AttributeError, OSError, ValueError):  # a stream is closed or in memory
            out, err = sys.stdout.fileno(), sys.stderr.fileno()
            before = os.dup(out)
            os.dup2(err, out)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, out)
        stack.enter_context(redirect_stdout(sys.stderr))
        yield


# --- progress -------------------------------------------------------------------------------------


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show on a terminal what is being done; with --verbose, how long it took."""
    begun = time.monotonic()
    with tracking(doing):
        yield
    if _Verbosity.level > 0:
        complain("note", f"{doing}: {time.monotonic() - begun:.1f} s")


# --- tables and facts -----------------------------------------------------------------------------

# Wider than any row: without a terminal every row stays one line.
_NO_LIMIT = 100_000


def cell(value: Any, number: str = ".4f") -> str:
    """A value for people: numbers with separators or four decimals, a dash for ``None``."""
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return format(value, number)
    if isinstance(value, dict):
        known = {key: each for key, each in value.items() if each is not None}
        return "; ".join(f"{key} {cell(each, '.4g')}" for key, each in known.items())
    if isinstance(value, (list, tuple)):
        nested = any(isinstance(each, dict) for each in value)
        return cell(len(value)) if nested else ", ".join(cell(each, ".4g") for each in value)
    return "-" if value in (None, "") else escaped(str(value))


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, number: str = ".4f") -> str:
    """Aligned columns, numbers to the right; the header is bold on a terminal."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = _is_terminal(sys.stdout)
    width = shutil.get_terminal_size().columns if terminal else _NO_LIMIT
    cells = [[cell(each, number) for each in row] for row in rows]
    texts = [
        any(isinstance(each, (str, bool, list)) for each in column)
        for column in zip(*rows, strict=True)
    ] or [True] * len(header)
    columns = list(zip(header, *cells, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    gap = 2
    if sum(widths) + gap * (len(widths) - 1) > width:
        # In a narrow terminal texts wrap between words; numbers and the first column stay whole.
        gap, room = 1, width - len(widths) + 1
        least = [max(map(cell_len, " ".join(column).split())) for column in columns]
        can = [i for i, text in enumerate(texts) if text and i]
        while sum(widths) > room and (able := [i for i in can if widths[i] > least[i]]):
            widths[max(able, key=widths.__getitem__)] -= 1
    grid = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for name, text, one in zip(header, texts, widths, strict=True):
        grid.add_column(Text(name), justify="left" if text else "right", overflow="fold", width=one)
    for row in rows:
        grid.add_row(*(Text(cell(each, number)) for each in row))
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=terminal and "NO_COLOR" not in os.environ,
        legacy_windows=False,
    )
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def facts(document: Mapping[str, Any], *keys: str) -> str:
    """The values of these keys (default: all), one per line, without those that are empty."""
    texts = {key: cell(document.get(key)) for key in keys or document}
    named = {
        "rows" if key == "n" else key.removeprefix("n_").replace("_", " "): text
        for key, text in texts.items()
        if text not in ("", "-")
    }
    width = max(8, *map(len, named))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in named.items())


def sets_table(sets: Sequence[SetSummary], temperatures: Sequence[float | None] = ()) -> str:
    """Rows, mean confidence and accuracy of every set of a bank."""
    header = ["set", "name", "rows", "mean confidence", "accuracy"]
    rows = [[i + 1, s.name, s.n, s.mean_confidence, s.accuracy] for i, s in enumerate(sets)]
    if temperatures:
        header.append("T")
        rows = [[*row, t] for row, t in zip(rows, temperatures, strict=True)]
    return table(header, rows)


def between(low: float | None, high: float | None) -> str:
    """The ends of an interval, or a dash where there is none."""
    return "-" if low is None or high is None else f"{low:.4f} to {high:.4f}"


def pasted(words: Sequence[str]) -> str:
    """A command that begins with ``shiftcal``, as it works in a shell that may not find it."""
    script = Path(sys.argv[0])
    found = shutil.which("shiftcal") is not None or script.stem != "shiftcal"
    return shlex.join(["shiftcal" if found else str(script), *words[1:]])


def to_json(command: str, document: dict[str, Any], *, warnings: list[str]) -> str:
    """The JSON document of a command, in ASCII; numbers that are not finite become ``null``."""
    about = {"shiftcal": version("shiftcal"), "command": command}
    whole = {**about, **document, "warnings": warnings}
    return json.dumps(_plain(whole), indent=1, allow_nan=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):  # a number of numpy's
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --- how a command ends ---------------------------------------------------------------------------


def interrupted() -> int:
    """Say on stderr that Ctrl-C ended the command; its exit status."""
    complain("error", "interrupted. Finished work is kept, and no file is left half-written.")
    return INTERRUPTED


def terminated() -> int:
    """The same for SIGTERM."""
    complain("error", "terminated. Finished work is kept.")
    return TERMINATED


def status_of(error: BaseException) -> int:
    """Say on stderr what ended the command; its exit status."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return interrupted()
    if isinstance(error, SystemExit):  # of typer and rich, when the reader of a help has gone
        return DONE
    reason = _reason(error)
    if reason and _Verbosity.level > 0:
        complain_at_length("".join(traceback.format_exception(error)))
    if reason:
        complain("error", reason)
        return BAD_INPUT
    complain_at_length("".join(traceback.format_exception(error)))
    complain(
        "error",
        "this is a bug in shiftcal, not in your input. Please report it with the lines above "
        f"(shiftcal {version('shiftcal')}, Python {platform.python_version()}).",
    )
    return OUR_BUG


def _reason(error: BaseException) -> str:
    """Why the input could not be used; empty if the input is not to blame."""
    if isinstance(error, ShiftcalError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this. Take fewer rows, or fewer bins, at a time."
    if isinstance(error, OSError):
        what = error.filename or "stdout could not be written"
        return f"{what}: {error.strerror or error}."
    message: Callable[[], str] | None = getattr(error, "format_message", None)
    if message is None:  # no usage error of typer's
        return ""
    text, context = message(), getattr(error, "ctx", None)
    if unknown := re.match(r"No such command '(.+?)'\.", text):
        known = list(getattr(getattr(context, "command", None), "commands", ()))
        text = f"no such command {unknown[1]!r}. {suggest(unknown[1], known)}"
    path = getattr(context, "command_path", "shiftcal")
    text = text.replace("Value error, ", "")
    text = f"{text[:1].lower()}{text[1:].rstrip('.')}"
    return f"{text}{'' if text.endswith('?') else '.'} See: {path} --help"
