"""What is where in a tar file of samples, by its headers alone."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from shiftcal.datasets.image_files import SUFFIXES
from shiftcal.errors import FileError

_COMPRESSED = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
}
# The folder and the name up to its first dot, then the rest.
_NAME = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]+)")
_IMAGES = frozenset(suffix[1:] for suffix in SUFFIXES)
_BLOCK = 512


@dataclass(frozen=True)
class Member:
    """Where a member's bytes are.

    Attributes:
        name: Its name in the archive.
        offset: Bytes before it.
        size: How many there are.
    """

    name: str
    offset: int
    size: int


@dataclass
class Sample:
    """Members that share a name up to the first dot.

    Attributes:
        key: That name.
        image: The one that is an image, if any.
        others: The others, by what follows the dot.
    """

    key: str
    image: Member | None = None
    others: dict[str, Member] = field(default_factory=dict)


def samples_of(file: Path) -> list[Sample]:
    """The samples of a tar file, in the order in which they begin.

    Raises:
        FileError: If it is compressed, cut short or no tar file, if a member is a link, or if a
            sample has two images.
    """
    samples: dict[str, Sample] = {}
    for member in _members(file):
        parts = _NAME.fullmatch(member.name)
        if parts is None:
            continue
        key, ending = parts[1], parts[2].lower()
        sample = samples.setdefault(key, Sample(key))
        if ending in _IMAGES:
            if sample.image is not None:
                raise FileError(
                    f"{file} must have one image a sample; {sample.image.name} and {member.name} "
                    "are of the same one."
                )
            sample.image = member
        elif ending in sample.others:
            raise FileError(f"{file} holds {member.name} twice.")
        else:
            sample.others[ending] = member
    return list(samples.values())


def _members(file: Path) -> Iterator[Member]:
    try:
        with file.open("rb") as opened:
            _refuse_compressed(file, opened.read(8))
            opened.seek(0)
            with tarfile.open(fileobj=opened, mode="r:") as archive:
                while (info := archive.next()) is not None:
                    # The archive keeps every header it has read.
                    archive.members.clear()  # type: ignore[attr-defined]
                    if not info.isdir():
                        _refuse_special(file, info)
                        yield Member(info.name, info.offset_data, info.size)
                _refuse_no_end(file, opened, archive.offset)
    except tarfile.TarError as error:
        raise FileError(
            f"{file} could not be read as a tar file: it is damaged, cut short, or something else "
            f"({error}). Fetch or write it again."
        ) from error
    except OSError as error:
        raise FileError(f"{file} could not be read: {error.strerror or error}.") from error


def _refuse_compressed(file: Path, head: bytes) -> None:
    for magic, (kind, command) in _COMPRESSED.items():
        if head.startswith(magic):
            raise FileError(
                f"{file} is compressed with {kind}; images are read here and there in it, which "
                f"only a plain .tar allows. Run {command} on it first."
            )


def _refuse_special(file: Path, info: tarfile.TarInfo) -> None:
    if not info.isreg() or info.sparse is not None:
        kind = "a link" if info.islnk() or info.issym() else "not a plain file"
        raise FileError(
            f"{file} must hold plain files; {info.name} is {kind}. Write it again with what the "
            "links lead to: tar --dereference --hard-dereference."
        )


def _refuse_no_end(file: Path, opened: IO[bytes], offset: int) -> None:
    """Python's reader stops at a damaged header as if it were the end."""
    opened.seek(offset)
    if opened.read(_BLOCK) != bytes(_BLOCK):
        raise FileError(
            f"{file} is damaged or cut short: after {offset:,} bytes neither the next member nor "
            "the end of a tar file follows. Fetch or write it again."
        )
