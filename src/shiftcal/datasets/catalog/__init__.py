"""Published data sets: what is known of each, and the function that loads it.

A data set is an :class:`About` record in one of these modules, listed by name in
:data:`shiftcal.registry.DATA_SETS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shiftcal.datasets.image_set import ImageSet


@dataclass(frozen=True)
class Download:
    """A file at its official address.

    Attributes:
        url: Where it is.
        file: Its name on disk.
        digest: Its published checksum, ``md5:...`` or ``sha256:...``; empty if none is published.
        unpack: Whether it is an archive to unpack.
        size: Bytes, if known; 0 otherwise.
    """

    url: str
    file: str
    digest: str = ""
    unpack: bool = True
    size: int = 0


@dataclass(frozen=True)
class Part:
    """A part of a data set that can be loaded, and what a complete copy of it contains.

    Attributes:
        name: Its name in reports, such as ``"test"``.
        options: Options of the loader that select this part.
        n: Number of images.
        per_class: Images of every class if that is one number, else 0.
        files: Files with a checksum that it consists of.
    """

    name: str
    options: Mapping[str, Any]
    n: int
    per_class: int = 0
    files: tuple[str, ...] = ()


def _with_and_without_folder(name: str) -> tuple[str, ...]:
    return name, name.partition("/")[2] or name


@dataclass(frozen=True)
class About:
    """What is known of a published data set.

    Attributes:
        load: ``load(root, **options)`` opens a copy as an :class:`~shiftcal.datasets.ImageSet`.
        title: Its name in print.
        n_classes: Number of classes.
        homepage: Where its authors describe it.
        licence: Its terms of use, in a few words.
        parts: What can be loaded.
        downloads: Its files at their official addresses; empty if a program cannot download them.
        by_hand: What to do then, in a sentence.
        digests: Checksums of unpacked files by their path below the root.
        paths: Paths below the root where copies may have a file with a checksum; by default its
            name, with and without the first folder.
    """

    load: Callable[..., ImageSet]
    title: str
    n_classes: int
    homepage: str
    licence: str
    parts: tuple[Part, ...]
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    paths: Callable[[str], Iterable[str]] = _with_and_without_folder

    def checksums(self, parts: Iterable[Part] = ()) -> dict[str, str]:
        """Published checksums by file, of the files of some parts (default: of all)."""
        known = self.digests or {
            source.file: source.digest
            for source in self.downloads
            if source.digest and not source.unpack
        }
        wanted = {name for part in parts for name in part.files}
        return {name: text for name, text in known.items() if not wanted or name in wanted}
