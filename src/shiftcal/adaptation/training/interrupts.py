"""Ctrl-C that waits for the end of an iteration, so that no weights are half updated."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Whether the training may be interrupted now, and whether somebody wants to.

    Attributes:
        busy: Whether an iteration is under way: Ctrl-C is remembered then; the second time it is
            obeyed at once, as at any other time.
        wanted: Whether it came.
    """

    def __init__(self) -> None:
        self.busy = False
        self.wanted = False

    def end_of_step(self) -> None:
        """The iteration is over.

        Raises:
            KeyboardInterrupt: If that was waited for.
        """
        self.busy = False
        if self.wanted:
            raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Ctrl-C as above meanwhile, in the main thread, which alone is told of it."""
    told = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield told
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if told.busy and not told.wanted:
            told.wanted = True
        else:
            before(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, before)
