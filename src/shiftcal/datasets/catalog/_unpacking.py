"""Compressed files, read to a limit that is set before."""

from __future__ import annotations

import bz2
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from shiftcal.errors import FileError

_STEP = 1 << 20


@contextmanager
def unpacking(file: Path) -> Iterator[BinaryIO]:
    """A file opened for reading, unpacked on the way if it ends in ``.gz`` or ``.bz2``.

    Raises:
        FileError: Instead of whatever goes wrong while it is read.
    """
    try:
        if not file.is_file():  # a pipe would be waited for
            raise FileError(f"{file} is not a file.")
        if file.suffix == ".gz":
            with gzip.open(file, "rb") as opened:
                yield cast("BinaryIO", opened)
        elif file.suffix == ".bz2":
            with bz2.open(file, "rb") as opened:
                yield cast("BinaryIO", opened)
        else:
            with file.open("rb") as plain:
                yield plain
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(_damaged(file, error)) from error
    except OSError as error:
        # The system's errors have a number, those of the decoders none.
        if error.errno is None:
            raise FileError(_damaged(file, error)) from error
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error


def read_at_most(stream: BinaryIO, most: int) -> bytearray:
    """What is left of a stream, but not more than so many bytes.

    It is read in small steps: a reader that is asked for all at once takes the memory for it
    before it knows that a damaged file has less.
    """
    content = bytearray()
    while len(content) < most and (more := stream.read(min(_STEP, most - len(content)))):
        content += more
    return content


def _damaged(file: Path, error: Exception) -> str:
    reason = str(error).rstrip(".") or type(error).__name__
    return f"{file} cannot be unpacked: it is damaged or cut short ({reason}). Fetch it again."
