"""Telling an image that is bad from one that the system failed to read."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

from shiftcal.errors import FileError

T = TypeVar("T")

# What is not there, or cannot be: another try finds it no better.
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
# Seconds before the second try: time for a connection to come back, and no burden to a run.
PAUSE = 0.25


def read_or_why(read: Callable[[], T]) -> T | FileError:
    """What a reader gives, or what is wrong with the image.

    An image is bad if its file is not there, or holds something else. If the system failed to
    read a file that is there, nothing is known of the image: it is read once more after a moment.

    Raises:
        FileError: If the system fails the second time as well.
    """
    for last in (False, True):
        try:
            return read()
        except FileError as error:
            if not _system_failed(error):
                return error
            if last:
                raise FileError(
                    f"{error} That was the second try, and says nothing of the image itself, so "
                    "nothing is stored of it. Start again when it can be read, or leave it out."
                ) from error.__cause__
        time.sleep(PAUSE)
    raise AssertionError("the last try returns or raises")


def _system_failed(error: FileError) -> bool:
    """Whether the system did not read, rather than a decoder: only its errors have a number."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno is not None and cause.errno not in _NOT_THERE
