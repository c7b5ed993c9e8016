"""Ctrl-C and SIGTERM, noted when they come and told where nothing is half done."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM)


class Halted(Exception):
    """A signal asks to stop; raised only where the input is waited for or between batches."""


class Halt:
    """Whether a signal has come.

    The first one waits for the end of the batch or file under way. The second is obeyed at once,
    as if there were no monitor: what was not yet acknowledged is then done again at a restart.

    Attributes:
        number: The signal; 0 before one.
    """

    def __init__(self) -> None:
        self.number = 0
        self._wake: socket.socket | None = None

    def check(self) -> None:
        """Tell it.

        Raises:
            Halted: If a signal has come.
        """
        if self.number:
            raise Halted

    def wait(self, descriptor: int | None, seconds: float | None) -> bool:
        """Wait until a descriptor can be read, so many seconds (``None``: as long as it takes).

        Returns:
            Whether it can be; always false without a descriptor, which is a pause only.

        Raises:
            Halted: If a signal has come.
        """
        self.check()
        if descriptor is not None and os.name == "nt":  # there only sockets can be waited for
            return True
        watched: list[int | socket.socket] = [] if self._wake is None else [self._wake]
        own = [] if descriptor is None else [descriptor]
        found, _, _ = select.select([*watched, *own], [], [], seconds)
        self.check()
        return descriptor in found

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note signals meanwhile, in the main thread, which alone is told of them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._wake, waker = socket.socketpair()
        waker.setblocking(False)
        before = {
            number: handler
            for number in _STOPPING
            # Ignored by nohup and background shells; none if set outside Python.
            if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN)
        }

        def note(number: int, _: FrameType | None) -> None:
            self.number = number
            for each, handler in before.items():
                signal.signal(each, handler)

        # A signal between the last look and the wait must end the wait: C writes to the waker.
        woken_before = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(woken_before)
            self._wake.close()
            waker.close()
            self._wake = None
