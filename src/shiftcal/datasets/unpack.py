"""Archives of strangers unpacked: all of it or nothing, and nothing outside its folder."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from shiftcal.datasets._archive_members import Member, members
from shiftcal.datasets._room import full_disk
from shiftcal.errors import FileError

_AT_ONCE = 1 << 20
# What decoders raise on content that is not theirs or broken off.
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeError,
)
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class Limits:
    """What an archive may become. Images hardly shrink, so what goes beyond is no data set.

    Attributes:
        ratio: Bytes unpacked for a byte of the archive.
        allowance: Bytes that are allowed to any archive beside that.
        members: How many files and folders.
    """

    ratio: int = 100
    allowance: int = 1 << 26
    members: int = 10_000_000


def unpack(
    archive: Path,
    folder: Path,
    *,
    limits: Limits | None = None,
    step: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Unpack an archive into a folder, by way of a temporary one beside what is there.

    Absolute paths, ``..``, devices and links to anything but a file of the same archive are
    refused; such a link becomes a copy of the file. Owners and permissions are not taken over.

    Args:
        archive: A tar, plain or compressed, a zip, or one compressed file.
        folder: Where its content goes. Files of the same name are replaced.
        limits: What it may become.
        step: Told how many bytes of the archive of how many are done.

    Returns:
        Names of what the folder now holds at its top of this archive, sorted.

    Raises:
        FileError: If it is damaged, dangerous or too large, or the disk is full; then nothing of
            it is left in ``folder``.
    """
    temporary = folder / f".{archive.name}.unpacking"
    shutil.rmtree(temporary, ignore_errors=True)  # of a run that was killed
    temporary.mkdir(mode=0o700)
    try:
        with _blaming(archive, folder):
            _Unpacking(archive, temporary, limits or Limits()).run(step)
            names = sorted(path.name for path in temporary.iterdir())
            _merge(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return names


class _Unpacking:
    def __init__(self, archive: Path, root: Path, limits: Limits) -> None:
        self.archive = archive
        self.root = root
        self.size = archive.stat().st_size
        self.most_bytes = limits.ratio * self.size + limits.allowance
        self.most_members = limits.members
        self.written = 0
        self.seen = 0

    def run(self, step: Callable[[int, int], None] | None) -> None:
        links: list[tuple[Path, Path, str]] = []
        with members(self.archive) as (found, told):
            for member in found:
                self._count(member)
                path = self._inside(member.name, member.name)
                if member.kind == "other":
                    self._refuse(f"{member.name!r} in it is a device, a pipe or the like")
                elif member.kind == "folder":
                    path.mkdir(parents=True, exist_ok=True)
                elif member.kind == "link":
                    links.append((path, self._inside(member.link, member.name), member.name))
                else:
                    self._write(member, path)
                if step is not None:
                    step(min(told(), self.size), self.size)
        # Last, and as copies: nothing is ever written through a link.
        for path, target, name in links:
            self._copy(path, target, name)

    def _count(self, member: Member) -> None:
        self.seen += 1
        if self.seen > self.most_members:
            self._refuse(f"it holds more than {self.most_members:,} files and folders")
        self._room_for(member.size or 0)

    def _room_for(self, more: int) -> None:
        if self.written + more > self.most_bytes:
            self._refuse(
                f"unpacked, its {self.size:,} bytes would become more than {self.most_bytes:,}"
            )

    def _inside(self, name: str, member: str) -> Path:
        """The path a name stands for; links have to stay inside as well."""
        normal = os.path.normpath(name) if name != member else name
        parts = [part for part in normal.split("/") if part not in ("", ".")]
        outside = normal.startswith("/") or _DRIVE.match(normal) or ".." in parts
        if outside or "\\" in name or "\0" in name or not name:
            leads = f"{member!r} in it" if name == member else f"the link {member!r} in it"
            self._refuse(f"{leads} leads outside, to {name!r}")
        return self.root.joinpath(*parts)

    def _write(self, member: Member, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        done = 0
        with member.open() as content, path.open("wb") as file:
            while piece := content.read(_AT_ONCE):
                self._room_for(len(piece))
                file.write(piece)
                self.written += len(piece)
                done += len(piece)
        if member.size is not None and done != member.size:
            raise EOFError(f"{member.name} has {done:,} of {member.size:,} bytes")

    def _copy(self, path: Path, target: Path, name: str) -> None:
        if not target.is_file():
            self._refuse(f"the link {name!r} in it does not lead to a file of it")
        self._room_for(target.stat().st_size)
        self.written += target.stat().st_size
        path.parent.mkdir(parents=True, exist_ok=True)
        if path != target:
            shutil.copyfile(target, path)

    def _refuse(self, reason: str) -> NoReturn:
        raise FileError(
            f"{self.archive} was not unpacked: {reason}. Do not trust it, and nothing from where "
            "it came."
        )


@contextmanager
def _blaming(archive: Path, folder: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except _DAMAGE as error:
        raise FileError(_damaged(archive, error)) from error
    except OSError as error:
        if error.errno is None:  # a decoder's complaint, such as gzip's of a bad checksum
            raise FileError(_damaged(archive, error)) from error
        advice = "Make room" if full_disk(error) else "See to that"
        raise FileError(
            f"{archive} could not be unpacked into {folder}: {error.strerror}. It is kept. "
            f"{advice}, and the same command goes on from there."
        ) from error


def _damaged(archive: Path, error: BaseException) -> str:
    reason = str(error).rstrip(".") or type(error).__name__
    return (
        f"{archive} could not be unpacked: it is damaged or not what its name says ({reason}). "
        "Remove it and fetch it again."
    )


def _merge(source: Path, folder: Path) -> None:
    """Move what is in one folder into another, file by file where both have a folder."""
    for path in sorted(source.iterdir()):
        target = folder / path.name
        if path.is_dir() and target.is_dir():
            _merge(path, target)
        else:
            path.replace(target)
