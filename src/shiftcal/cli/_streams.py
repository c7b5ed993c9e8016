"""The only writing to stdout and stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

from shiftcal.errors import FileError, FitWarning, InputWarning


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
    joined = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


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
