"""Checksums of files, as they are published."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from shiftcal.errors import FileError

_AT_ONCE = 1 << 20
_DECODERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def checksum(
    path: Path,
    algorithm: str,
    *,
    unpacked: bool = False,
    step: Callable[[int, int], None] | None = None,
) -> str:
    """The checksum of a file, or of what it unpacks to, in hexadecimal digits.

    Args:
        path: The file.
        algorithm: ``"md5"`` or ``"sha256"``.
        unpacked: Whether what is compressed in it counts; its name ends in ``.gz`` or ``.bz2``.
        step: Told after every piece how many bytes of how many are done.

    Raises:
        FileError: If it cannot be read or unpacked.
    """
    # Only accidents are to be found by it where it is MD5, and some systems refuse that otherwise.
    made = hashlib.new(algorithm, usedforsecurity=False)
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            content = cast("IO[bytes]", _DECODERS[path.suffix](file)) if unpacked else file
            while piece := content.read(_AT_ONCE):
                made.update(piece)
                if step is not None:
                    step(file.tell(), size)
    except OSError as error:
        raise FileError(f"{path} could not be read: {error.strerror or error}.") from error
    except (EOFError, zlib.error) as error:
        raise FileError(f"{path} is damaged or cut short ({error}).") from error
    return made.hexdigest()


def split_digest(text: str) -> tuple[str, str]:
    """Algorithm and digits of a checksum such as ``"md5:c32a1d4ab5d03f1284b67883e8d87530"``."""
    algorithm, _, digits = text.partition(":")
    return algorithm, digits.lower()
