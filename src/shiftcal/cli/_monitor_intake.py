"""Bytes of standard input, waited for where a signal may end the wait."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any

from shiftcal.cli._monitor_halt import Halt
from shiftcal.errors import FileError, InputError

_AT_ONCE = 1 << 18
_WHAT_TO_DO = (
    "Send batches of logits into it, as in `shiftcal monitor SPEC < stream.npy`, or name a folder "
    "of scores files with --follow."
)


class Intake:
    """The bytes of a stream, in order, with the number of those taken.

    Args:
        stream: An unbuffered binary file, or something in memory.
        halt: Asked while waiting.
        idle: Called before a wait that may be long; gives how many seconds to wait before it is
            to be called again, or ``None`` if there is nothing to call it for.

    Attributes:
        offset: Bytes taken so far.
    """

    def __init__(
        self, stream: io.RawIOBase | io.BufferedIOBase, halt: Halt, idle: Callable[[], float | None]
    ) -> None:
        self.offset = 0
        self._stream, self._halt, self._idle = stream, halt, idle
        self._buffer = bytearray()
        self._ended = False
        self._descriptor = _descriptor(stream)

    def peek(self, n: int) -> bytes:
        """The next ``n`` bytes, or as many as there are, which stay."""
        while len(self._buffer) < n and self._more():
            pass
        return bytes(self._buffer[:n])

    def take(self, n: int) -> bytes:
        """The next ``n`` bytes, or as many as there are; memory is used as they come."""
        taken = self.peek(n)
        self._drop(len(taken))
        return taken

    def line(self, limit: int) -> tuple[bytes, bool]:
        """The next line without its end, and whether it is whole; nothing at the end of it all.

        Of a line of more than ``limit`` bytes the beginning is given, and the rest passed over.
        """
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0 and len(self._buffer) <= limit:
            searched = len(self._buffer)
            if not self._more():
                return self.take(searched), True
        if 0 <= end <= limit:
            return self.take(end + 1), True
        beginning = self.take(80)
        self._pass_line()
        return beginning, False

    def _pass_line(self) -> None:
        while (end := self._buffer.find(b"\n")) < 0:
            self._drop(len(self._buffer))
            if not self._more():
                return
        self._drop(end + 1)

    def _drop(self, n: int) -> None:
        del self._buffer[:n]
        self.offset += n

    def _more(self) -> bool:
        """Read what is there, after a wait if need be; false at the end."""
        if self._ended:
            return False
        if self._descriptor is None:
            self._halt.check()
            came = self._stream.read(_AT_ONCE) or b""
        else:
            self._await(self._descriptor)
            try:
                came = os.read(self._descriptor, _AT_ONCE)
            except OSError as error:
                raise FileError(
                    f"standard input could not be read: {error.strerror or error}. {_WHAT_TO_DO}"
                ) from error
        self._buffer += came
        self._ended = not came
        return bool(came)

    def _await(self, descriptor: int) -> None:
        if self._halt.wait(descriptor, 0):
            return
        while (seconds := self._idle()) is not None:
            if self._halt.wait(descriptor, seconds):
                return
        self._halt.wait(descriptor, None)


def standard_input() -> io.RawIOBase | io.BufferedIOBase:
    """The binary stream behind standard input.

    Raises:
        InputError: If there is none, or it is a terminal.
    """
    if sys.stdin is None or sys.stdin.closed:  # <&-
        raise InputError(f"standard input is closed, and batches are read from it. {_WHAT_TO_DO}")
    if sys.stdin.isatty():
        raise InputError(
            f"standard input is a terminal, and batches are read from it. {_WHAT_TO_DO}"
        )
    buffer: Any = sys.stdin.buffer
    raw: io.RawIOBase | io.BufferedIOBase = getattr(buffer, "raw", buffer)
    return raw


class NothingCame(InputError):
    """Standard input was empty."""

    def __init__(self) -> None:
        super().__init__(f"standard input ended before anything came. {_WHAT_TO_DO}")


def _descriptor(stream: io.IOBase) -> int | None:
    try:
        return stream.fileno()
    except (OSError, AttributeError):
        return None
