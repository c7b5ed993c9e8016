"""Streams of batches in every format, and what a reader makes of them."""

from __future__ import annotations

import io
import json

import numpy as np

from shiftcal.cli.stream import BadBatch, stdin_batches


def npy(*arrays, **options):
    """Arrays one after the other."""
    buffer = io.BytesIO()
    for array in arrays:
        np.save(buffer, array, **options)
    return buffer.getvalue()


def headed(header, content=b"", *, version=(1, 0)):
    """An ``.npy`` array with any header."""
    text = header if isinstance(header, bytes) else header.encode()
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + length + text + content


def jsonl(*lines):
    """One JSON value a line."""
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def arrow(*tables, **options):
    """An Arrow stream of record batches, given as columns by name."""
    import pyarrow as pa

    batches = [pa.record_batch(table) for table in tables]
    buffer = io.BytesIO()
    written = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_stream(buffer, batches[0].schema, options=written) as writer:
        for batch in batches:
            writer.write(batch)
    return buffer.getvalue()


def columns(logits, prefix="logit_"):
    """A column for every class."""
    return {f"{prefix}{i}": column for i, column in enumerate(logits.T)}


class Trickle(io.RawIOBase):
    """Bytes that arrive a few at a time, as from a slow sender."""

    def __init__(self, content, size):
        super().__init__()
        self._content, self._size = io.BytesIO(content), size

    def readable(self):
        return True

    def readinto(self, buffer):
        content = self._content.read(min(self._size, len(buffer)))
        buffer[: len(content)] = content
        return len(content)


def items(content, *, trickle=1 << 18):
    """Everything that is read from bytes, a few at a time; the error that ends it comes last."""
    found = []
    try:
        found.extend(stdin_batches(io.BufferedReader(Trickle(content, trickle))))
    except BadBatch as error:
        found.append(error)
    return found
