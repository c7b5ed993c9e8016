"""``.npy`` arrays one after the other, as ``np.save`` writes them into a pipe."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shiftcal.cli._monitor_batches import Batch, Broken, Item, Limits

if TYPE_CHECKING:
    from numpy import dtype

    from shiftcal.cli._monitor_intake import Intake

MAGIC = b"\x93NUMPY"
# numpy writes under 200 bytes for an array of numbers.
_LONGEST_HEADER = 4096
_LOST = (
    "Where the next array begins cannot be known, so that nothing after it is read. Start the "
    "sender again."
)
# Bytes of the length of the header, by the version of the format.
_LENGTHS = {1: 2, 2: 4}


def npy_batches(intake: Intake, limits: Limits) -> Iterator[Item]:
    """Every array, and what is none; after the latter nothing more, unless its size is known.

    Nothing is unpickled, and type and shape are checked before the numbers are read.
    """
    number = 0
    while intake.peek(1):
        number += 1
        start = intake.offset
        item = _array(intake, limits, f"batch {number}", start)
        yield item
        if isinstance(item, Broken) and item.final:
            return


def _array(intake: Intake, limits: Limits, name: str, start: int) -> Item:
    try:
        shape, fortran, kind = _header(intake)
    except ValueError as error:
        where = f"{name} (from byte {start})"
        return Broken(where, f"the header must be that of an .npy array; {error}.", _LOST)
    size = math.prod(shape) * kind.itemsize
    where = f"{name} (bytes {start} to {intake.offset + size})"
    reason = _refused_type(kind) or limits.refused(shape)
    if reason and (kind.hasobject or not 0 <= size <= limits.body):
        return Broken(where, reason, _LOST)
    content = intake.take(size)
    if len(content) < size:
        return Broken(
            where,
            f"the array must have the {size} bytes its header says; the input ended after "
            f"{len(content)}.",
            _LOST,
        )
    if reason:
        return Broken(where, reason)
    import numpy as np

    flat = np.frombuffer(content, dtype=kind)
    return Batch(flat.reshape(shape, order="F" if fortran else "C"), where)


def _header(intake: Intake) -> tuple[tuple[int, ...], bool, dtype[Any]]:
    """Shape, order and type of the next array.

    Raises:
        ValueError: With what came, in words that follow a semicolon.
    """
    from numpy.lib import format as npy

    begin = intake.take(8)
    if not begin.startswith(MAGIC):
        raise ValueError(f"it begins with the bytes {begin!r}")
    major = begin[6] if len(begin) == 8 else 0
    if major not in _LENGTHS:
        raise ValueError(f"its version is {tuple(begin[6:8])}, and 1 and 2 are read")
    counted = intake.take(_LENGTHS[major])
    length = int.from_bytes(counted, "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"it says it is {length} bytes long, and {_LONGEST_HEADER} are enough")
    text = io.BytesIO(counted + intake.take(length))
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python 2 and odd escapes, which do no harm
            return read(text)
    except Exception as error:  # a hostile header raises what the parser of Python likes
        raise ValueError(f"it could not be read ({' '.join(str(error).split())[:200]})") from error


def _refused_type(kind: dtype[Any]) -> str:
    if kind.hasobject:
        return (
            "a batch must be numbers; this one holds pickled Python objects, which are never "
            "loaded because they can run code. Send logits as float32 or float64."
        )
    if kind.kind not in "iuf":
        return f"a batch must be real numbers; got dtype {kind}. Send float32 or float64."
    return ""
