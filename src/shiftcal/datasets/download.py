"""One file from its address to the disk: resumed where it broke off, checked before it is named."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

from shiftcal._files import flush_file, flush_folder
from shiftcal.datasets._http import NO_SUCH_RANGE, Broken, open_url, read_some
from shiftcal.datasets._partial import Partial, continues, facts_of, resuming, whole_size
from shiftcal.datasets._room import check_room, full_disk
from shiftcal.datasets.about import Download
from shiftcal.datasets.checksums import checksum
from shiftcal.errors import FileError

_AT_ONCE = 1 << 18
# A try that brought this much further does not count as a failure: long files on poor lines.
_WORTH_A_TRY = 1 << 20


class Watch(Protocol):
    """Is told what goes on while data is fetched."""

    def moved(self, doing: str, done: int, total: int | None) -> None:
        """So many bytes of so many (if that is known) are done of this."""

    def note(self, text: str) -> None:
        """Something happened that need not stop anything."""


class Unwatched:
    """Does nothing with what it is told."""

    def moved(self, doing: str, done: int, total: int | None) -> None:
        """So many bytes of so many (if that is known) are done of this."""

    def note(self, text: str) -> None:
        """Something happened that need not stop anything."""


@dataclass(frozen=True)
class Line:
    """How patient a download is.

    Attributes:
        timeout: Seconds without a byte after which the connection counts as broken.
        tries: Failures in a row, none of which brought the file forward, before it gives up.
        wait: Called with the seconds to wait between two tries.
    """

    timeout: float = 30.0
    tries: int = 6
    wait: Callable[[float], None] = time.sleep


def download(
    source: Download,
    folder: Path,
    *,
    watch: Watch | None = None,
    line: Line | None = None,
    again: bool = False,
) -> Path:
    """Fetch a file into a folder; if it is there already, only its checksum is verified.

    Until it is whole and verified it is called ``<file>.partial``. What is there of that from an
    earlier run is kept, if the server says that its file is still the same one.

    Args:
        source: Address, name and checksum.
        folder: Where to; it must exist.
        watch: Told of progress and of broken connections.
        line: Patience.
        again: Fetch it even if it is there; it is replaced when the new one is verified.

    Raises:
        FileError: If it cannot be fetched, is not what was published, or the disk is full.
    """
    watch, line = watch or Unwatched(), line or Line()
    target = folder / source.file
    if target.exists() and not again:
        _check_content(source, target, watch, "Remove it, and the same command fetches it.")
        return target
    partial = Partial(folder / f"{source.file}.partial", folder / f"{source.file}.partial.json")
    _try_until_whole(source, partial, watch, line)
    try:
        _check_content(source, partial.path, watch, "It was removed; another try may help.")
    except FileError:
        partial.discard()
        raise
    try:
        flush_file(partial.path)
        partial.path.replace(target)
    except OSError as error:
        raise FileError(_not_written(partial, error)) from error
    partial.discard()
    flush_folder(folder)
    return target


def _try_until_whole(source: Download, partial: Partial, watch: Watch, line: Line) -> None:
    failures, furthest = 0, partial.size()
    while True:
        try:
            _attempt(source, partial, watch, line.timeout)
            return
        except Broken as broken:
            if partial.size() >= furthest + _WORTH_A_TRY:
                failures, furthest = 0, partial.size()
            failures += 1
            if failures >= line.tries:
                raise FileError(_given_up(source, partial, broken, failures)) from broken
            pause = broken.wait if broken.wait is not None else min(2.0 ** (failures - 1), 60.0)
            watch.note(f"{source.file}: {broken}. Trying again in {pause:.0f} s.")
            line.wait(pause)


def _attempt(source: Download, partial: Partial, watch: Watch, timeout: float) -> None:
    have, known = partial.size(), partial.known()
    headers = resuming(source, known, have)
    if headers and have == known.total:
        return
    answer = open_url(source.url, headers=headers, timeout=timeout, checked=bool(source.digest))
    with answer:
        if answer.status == NO_SUCH_RANGE:
            if whole_size(answer) == have:
                return
            partial.discard()
            raise Broken("the file on the server has changed")
        if "html" in (answer.headers.get("Content-Type") or "") and ".htm" not in source.file:
            raise FileError(
                f"{source.url} gave a web page instead of {source.file}. Open it in a browser to "
                "see what it asks for."
            )
        total = whole_size(answer)
        if answer.status != 206:
            have = 0
            partial.begin(facts_of(source.url, answer, total))
        elif not continues(answer, known, have):
            partial.discard()
            raise Broken("the file on the server has changed")
        if total is not None:
            check_room(partial.path.parent, total - have, source.file)
        _receive(source, answer, partial, total=total, watch=watch)


def _receive(
    source: Download, answer: Any, partial: Partial, *, total: int | None, watch: Watch
) -> None:
    # Without a buffer nothing can fail when the file is closed, and what came is on the disk.
    expected = total or source.size or None
    with partial.path.open("ab", buffering=0) as file:
        done = partial.size()
        watch.moved(source.file, done, expected)
        while total is None or done < total:
            most = _AT_ONCE if total is None else min(_AT_ONCE, total - done)
            piece = read_some(answer, most)
            if not piece:
                break
            try:
                _write(file, piece)
            except OSError as error:
                raise FileError(_not_written(partial, error)) from error
            done += len(piece)
            watch.moved(source.file, done, expected)
    if expected is not None and done < expected:
        raise Broken(f"the connection ended after {done:,} of {expected:,} bytes")


def _write(file: FileIO, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[file.write(rest) or 0 :]


def _check_content(source: Download, path: Path, watch: Watch, what_to_do: str) -> None:
    subject = path if path.name == source.file else f"{source.file} as {source.url} gives it"
    if not source.digest:
        size = path.stat().st_size
        if source.size and size != source.size:
            raise FileError(
                f"{subject} is not the published file: it must have {source.size:,} bytes; got "
                f"{size:,}. {what_to_do}"
            )
        watch.note(f"{source.file}: no checksum of it is published, so none was verified.")
        return
    doing = f"verifying {source.file}"
    got = checksum(path, source.algorithm, step=lambda done, size: watch.moved(doing, done, size))
    if got != source.digest.lower():
        raise FileError(
            f"{subject} is not the published file: its {source.algorithm} must be "
            f"{source.digest.lower()}; got {got}. {what_to_do}"
        )


def _not_written(partial: Partial, error: OSError) -> str:
    advice = "make room" if full_disk(error) else "see to that"
    return (
        f"{partial.path} could not be written: {error.strerror or error}. Its {partial.size():,} "
        f"bytes are kept; {advice}, and the same command goes on from there."
    )


def _given_up(source: Download, partial: Partial, broken: Broken, failures: int) -> str:
    have = partial.size()
    kept = f" {have:,} bytes are kept, and the same command goes on from there." if have else ""
    return (
        f"{source.url} could not be fetched: {broken}; given up after {failures} tries that "
        f"brought nothing more.{kept}"
    )
