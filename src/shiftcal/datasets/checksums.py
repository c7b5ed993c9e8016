"""Checksums of files, as they are published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from shiftcal.errors import FileError

_AT_ONCE = 1 << 20


def checksum(path: Path, algorithm: str, *, step: Callable[[int, int], None] | None = None) -> str:
    """The checksum of a file in hexadecimal digits.

    Args:
        path: The file.
        algorithm: ``"md5"`` or ``"sha256"``.
        step: Told after every piece how many bytes of how many are done.

    Raises:
        FileError: If it cannot be read.
    """
    # Only accidents are to be found by it where it is MD5, and some systems refuse that otherwise.
    made = hashlib.new(algorithm, usedforsecurity=False)
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            done = 0
            while piece := file.read(_AT_ONCE):
                made.update(piece)
                done += len(piece)
                if step is not None:
                    step(done, size)
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror or error}.") from error
    return made.hexdigest()


def split_digest(text: str) -> tuple[str, str]:
    """Algorithm and digits of a checksum such as ``"md5:c32a1d4ab5d03f1284b67883e8d87530"``."""
    algorithm, _, digits = text.partition(":")
    return algorithm, digits.lower()
