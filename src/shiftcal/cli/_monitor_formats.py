"""The format of standard input: what was said, or what its first bytes say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shiftcal.cli import _monitor_arrow, _monitor_npy
from shiftcal.cli._monitor_arrow import arrow_batches
from shiftcal.cli._monitor_intake import NothingCame
from shiftcal.cli._monitor_jsonl import MARK, jsonl_batches
from shiftcal.cli._monitor_npy import npy_batches
from shiftcal.errors import InputError

if TYPE_CHECKING:
    from shiftcal.cli._monitor_batches import Item, Limits
    from shiftcal.cli._monitor_intake import Intake

READERS = {"npy": npy_batches, "arrow": arrow_batches, "jsonl": jsonl_batches}
# What else people send, and what to do about it.
_OTHERS = {
    b"PK\x03\x04": "a zip archive, as .npz is. Write such files into a folder and --follow it",
    b"PAR1": "a Parquet file. Write such files into a folder and --follow it",
    b"ARROW1": "an Arrow file. Write a stream instead (pyarrow.ipc.new_stream)",
    b"\x1f\x8b": "compressed by gzip. Unpack it first: gunzip -c FILE | shiftcal monitor ...",
    b"(\xb5/\xfd": "compressed by zstd. Unpack it first: zstd -dc FILE | shiftcal monitor ...",
    b"\x80": "a pickle, which is never loaded because it can run code. Send .npy arrays",
}


def stream_batches(intake: Intake, limits: Limits, named: str | None) -> Iterator[Item]:
    """The batches of a stream.

    Args:
        intake: Its bytes.
        limits: How large a batch may be.
        named: The format, if it was said; else the first bytes say it.

    Raises:
        InputError: If nothing comes, or the format is none of those read.
    """
    head = intake.peek(8)
    if not head:
        raise NothingCame
    yield from READERS[named or _sniffed(intake, head)](intake, limits)


def _sniffed(intake: Intake, head: bytes) -> str:
    if head.startswith(_monitor_npy.MAGIC):
        return "npy"
    if head.startswith(_monitor_arrow.MAGIC):
        return "arrow"
    text = head.removeprefix(MARK).lstrip()
    room = len(head)
    while not text and len(intake.peek(2 * room)) > room:  # blank lines before the first
        room = len(head := intake.peek(2 * room))
        text = head.removeprefix(MARK).lstrip()
    if text[:1] in (b"[", b"{"):
        return "jsonl"
    known = next((what for magic, what in _OTHERS.items() if head.startswith(magic)), "")
    seen = f"this is {known}" if known else f"it begins with the bytes {head[:16]!r}"
    raise InputError(
        "standard input must be .npy arrays, an Arrow stream or JSON lines, which its first bytes "
        f"tell; {seen}."
    )
