"""What is in an archive, one member after the other, whatever its kind."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, cast

from shiftcal.errors import FileError

Opener = Callable[[], IO[bytes]]
_TAR_ENDS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_SINGLE_ENDS = (".gz", ".bz2", ".xz")
# First bytes of a compressed file. Its name does not tell: some published .tar.gz are plain tars.
_DECODERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
KINDS = (*_TAR_ENDS, ".zip", *_SINGLE_ENDS)
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Member:
    """One entry of an archive.

    Attributes:
        name: Its path as the archive has it, not to be trusted.
        kind: What it is; ``"other"`` is a device, a pipe and the like.
        size: Bytes the archive says it has; ``None`` if it does not say.
        open: Gives its content, if it is a file. Good until the next member is asked for.
        link: Where a link leads, as a path from the root of the archive.
    """

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int | None
    open: Opener
    link: str = ""


@contextmanager
def members(archive: Path) -> Iterator[tuple[Iterator[Member], Callable[[], int]]]:
    """The members of an archive, and a function that gives the bytes of it that were read so far.

    Whatever the decoders raise on a damaged archive comes through as it is.

    Raises:
        FileError: If the file's name does not end as one of :data:`KINDS`.
    """
    name = archive.name.lower()
    with archive.open("rb") as raw:
        if name.endswith(".zip"):
            with zipfile.ZipFile(raw) as opened:
                yield _of_zip(opened), raw.tell
            return
        if not name.endswith(KINDS):
            raise FileError(
                f"{archive} cannot be unpacked: its name must end in {', '.join(KINDS)}."
            )
        with _decoded(raw) as stream:
            if name.endswith(_TAR_ENDS):
                with tarfile.open(fileobj=stream, mode="r:") as tar:
                    yield _of_tar(tar), raw.tell
            elif stream is raw:
                raise EOFError("it is not compressed")
            else:
                single = Member(archive.stem, "file", None, lambda: stream)
                yield iter([single]), raw.tell
                return
            # Only at the end of the stream does a decoder compare its own checksum.
            while stream.read(_AT_ONCE):
                pass


def _decoded(raw: IO[bytes]) -> IO[bytes]:
    head = raw.read(6)
    raw.seek(0)
    for mark, opener in _DECODERS.items():
        if head.startswith(mark):
            return cast("IO[bytes]", opener(raw))
    return raw


def _of_tar(tar: tarfile.TarFile) -> Iterator[Member]:
    while (found := tar.next()) is not None:
        # A million members would fill the memory; none is needed again.
        tar.members = []  # type: ignore[attr-defined]
        yield Member(
            found.name,
            _tar_kind(found),
            found.size,
            partial(_content, tar, found),
            _led(found),
        )


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    assert content is not None, "only asked of files"
    return content


def _tar_kind(member: tarfile.TarInfo) -> Literal["file", "folder", "link", "other"]:
    if member.isdir():
        return "folder"
    if member.issym() or member.islnk():
        return "link"
    return "file" if member.isfile() else "other"


def _led(member: tarfile.TarInfo) -> str:
    """Where a link leads: a hard link counts from the root, a symbolic one from its own folder."""
    if not member.issym() or member.linkname.startswith("/"):
        return member.linkname
    return _beside(member.name, member.linkname)


def _beside(name: str, other: str) -> str:
    folder = name.rstrip("/").rpartition("/")[0]
    return f"{folder}/{other}" if folder else other


def _of_zip(opened: zipfile.ZipFile) -> Iterator[Member]:
    for found in opened.infolist():
        kind = _zip_kind(found)
        link = ""
        if kind == "link":
            with opened.open(found) as content:
                told = content.read(4096).decode("utf-8", "replace")
            link = told if told.startswith("/") else _beside(found.filename, told)
        # The name as stored: the other one has been tidied up to the first NUL.
        name = found.orig_filename
        yield Member(name, kind, found.file_size, partial(opened.open, found), link)


def _zip_kind(member: zipfile.ZipInfo) -> Literal["file", "folder", "link", "other"]:
    # The upper half has the mode a Unix system gave the file; others leave it zero.
    mode = stat.S_IFMT(member.external_attr >> 16)
    if mode == stat.S_IFLNK:
        return "link"
    if member.is_dir():
        return "folder"
    return "file" if mode in (0, stat.S_IFREG) else "other"
