"""What is known of a published data set: where it comes from and what must be in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal


@dataclass(frozen=True)
class Download:
    """A file at its official address.

    Attributes:
        url: Where it is.
        file: What it is called on disk.
        digest: Its checksum in hexadecimal digits, as published; empty if none is.
        algorithm: Which checksum it is.
        unpack: Whether it is an archive whose content is the data set.
        size: Bytes, if known; 0 otherwise.
    """

    url: str
    file: str
    digest: str = ""
    algorithm: Literal["md5", "sha256"] = "md5"
    unpack: bool = True
    size: int = 0


@dataclass(frozen=True)
class Part:
    """A part of the data set that can be loaded, and how much must be in it.

    Attributes:
        name: What it is called in a report, such as ``"test"``.
        options: Options of the loader that give this part.
        n: Images there must be.
        per_class: Images there must be of every class, if that is one number; 0 if not.
        files: Names of the files with a checksum that it consists of.
    """

    name: str
    options: Mapping[str, Any]
    n: int
    per_class: int = 0
    files: tuple[str, ...] = ()


def _with_and_without_folder(name: str) -> tuple[str, ...]:
    _, _, below = name.partition("/")
    return (name, below) if below else (name,)


def _unpacked(file: str, digests: Mapping[str, str]) -> bool:
    return any(file.removesuffix(end) in digests for end in (".gz", ".bz2"))


@dataclass(frozen=True)
class About:
    """What is known of a published data set.

    Attributes:
        title: Its name in print.
        n_classes: Number of classes.
        homepage: Where its makers describe it.
        licence: What they say of its use, in a few words.
        parts: What can be loaded of it.
        downloads: Its files at their official addresses; none if they cannot be fetched by a
            program.
        by_hand: What to do then, in a sentence.
        digests: Checksums of unpacked files by their path below the root, as ``md5:...`` or
            ``sha256:...``.
        paths: Gives the paths below the root at which copies have a file with a checksum, in the
            order in which they are looked for; by default its name, with and without its first
            folder.
    """

    title: str
    n_classes: int
    homepage: str
    licence: str
    parts: tuple[Part, ...]
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""
    digests: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    paths: Callable[[str], Iterable[str]] = _with_and_without_folder

    def checksums(self, parts: Iterable[Part] = ()) -> dict[str, str]:
        """Published checksums of the files that some parts consist of, by name; of all by default.

        A download that is not unpacked is such a file itself. Where the checksum of what a
        compressed one unpacks to is known, that counts: others may have compressed it anew.
        """
        known = {
            source.file: f"{source.algorithm}:{source.digest}"
            for source in self.downloads
            if source.digest and not source.unpack and not _unpacked(source.file, self.digests)
        } | dict(self.digests)
        wanted = {name for part in parts for name in part.files}
        return {name: text for name, text in known.items() if not wanted or name in wanted}
