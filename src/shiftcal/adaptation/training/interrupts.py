"""Ctrl-C that waits for the end of an iteration, so that no weights are half updated."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Seconds in which a second Ctrl-C is the first: a launcher passes on what the terminal sent too.
_PASSED_ON = 2.0


class Interrupts:
    """Whether the training may be interrupted now, and whether somebody wants to.

    Args:
        together: Whether other processes take part, so that all must stop after one iteration:
            Ctrl-C is remembered at any time then, and they settle when.

    Attributes:
        busy: Whether an iteration is under way: Ctrl-C is remembered then; the second time it is
            obeyed at once, as at any other time.
        wanted: Whether it came.
    """

    def __init__(self, *, together: bool = False) -> None:
        self.busy = False
        self.wanted = False
        self._together = together
        self._came = 0.0

    def end_of_step(self) -> None:
        """The iteration is over.

        Raises:
            KeyboardInterrupt: If that was waited for.
        """
        self.busy = False
        if self.wanted and not self._together:
            raise KeyboardInterrupt

    def remember(self) -> bool:
        """Ctrl-C has come; gives whether it can wait."""
        if self.wanted:
            return self._together and time.monotonic() - self._came < _PASSED_ON
        self.wanted = self.busy or self._together
        self._came = time.monotonic()
        return self.wanted


@contextmanager
def interrupts(*, together: bool = False) -> Iterator[Interrupts]:
    """Ctrl-C as above meanwhile, in the main thread, which alone is told of it."""
    told = Interrupts(together=together)
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield told
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if not told.remember():
            before(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, before)
