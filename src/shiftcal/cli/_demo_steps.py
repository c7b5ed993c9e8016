"""The steps of the demo as they go: one line each, and a sign of life on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shiftcal.cli._streams import complain, progress


class Steps:
    """Tells steps on stderr: ``1 of 5: training ...``.

    Args:
        of: How many there are.
    """

    def __init__(self, of: int) -> None:
        self._of = of
        self._done = 0

    @contextmanager
    def __call__(self, doing: str, *, own_bar: bool = False) -> Iterator[None]:
        """One step, told when it begins.

        Args:
            doing: What is done.
            own_bar: Whether it shows how far it is by itself.
        """
        self._done += 1
        complain("progress", f"{self._done} of {self._of}: {doing}")
        if own_bar:
            yield
        else:
            with progress(f"{doing} ..."):
                yield
