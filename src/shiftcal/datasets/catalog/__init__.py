"""Published data sets: what is known of each, and the function that loads it.

A data set is an :class:`About` record in one of these modules, listed by name in
:data:`shiftcal.registry.DATA_SETS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftcal.checks import check_count
from shiftcal.datasets.image_set import ImageSet
from shiftcal.errors import MissingData
from shiftcal.registry import CORRUPTIONS

Root = str | os.PathLike[str]
# A corruption or severity, several in a list or with commas, or ``None`` or ``"all"``.
Several = str | int | Sequence[str | int] | None
# The corruptions that are published, which are the built-in ones.
PUBLISHED = tuple(CORRUPTIONS.entries)
SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Download:
    """A file at its official address.

    Attributes:
        url: Where it is.
        digest: Its published checksum, ``md5:...`` or ``sha256:...``; empty if none is published.
        size: Bytes, if known; 0 otherwise.
    """

    url: str
    digest: str = ""
    size: int = 0

    @property
    def file(self) -> str:
        """Its name on disk."""
        return self.url.rpartition("/")[2]

    @property
    def unpack(self) -> bool:
        """Whether it is an archive to unpack."""
        return self.file.endswith((".tar", ".tar.gz", ".zip"))


@dataclass(frozen=True)
class About:
    """What is known of a published data set.

    Attributes:
        load: ``load(root, **options)`` opens a copy as an :class:`~shiftcal.datasets.ImageSet`.
        title: Its name in print.
        n_classes: Number of classes.
        homepage: Where its authors describe it.
        licence: Its terms of use, in a few words.
        counts: Number of images of each part that can be loaded, by its name.
        option: The option of ``load`` that takes the name of a part; empty if there is one part.
        balanced: Whether all classes have the same number of images, where that is possible.
        downloads: Its files at their official addresses; empty if a program cannot download them.
        by_hand: What to do then, in a sentence.
    """

    load: Callable[..., ImageSet]
    title: str
    n_classes: int
    homepage: str
    licence: str
    counts: Mapping[str, int]
    option: str = "split"
    balanced: bool = False
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""


def inside(root: Root, *folders: str) -> Path:
    """The first of these folders below the root that exists, else the root itself."""
    places = (Path(root, folder) for folder in folders)
    return next(filter(Path.is_dir, places), Path(root))


def chosen(
    corruption: Several, severity: Several, present: Collection[str], root: Path
) -> tuple[list[str], list[int], str]:
    """Corruptions and severities in the order asked for, and both in a few words: ``"fog 3"``.

    Args:
        corruption: Default: all that are there, by name.
        severity: Default: all five.
        present: The corruptions that are there.
        root: Where that is, for messages.

    Raises:
        MissingData: If a corruption is not there.
    """
    names = [str(name) for name in _listed(corruption)] or sorted(present)
    missing = [name for name in names or ("fog",) if name not in present]
    if missing:
        there = ", ".join(sorted(present)) or "none"
        raise MissingData(f"{root} has no {', '.join(missing)}; the corruptions in it: {there}.")
    levels = [
        check_count(int(one) if str(one).isdecimal() else one, name="severity", most=5)
        for one in _listed(severity) or SEVERITIES
    ]
    title = names[0] if len(names) == 1 else f"{len(names)} corruptions"
    if levels != list(SEVERITIES):
        title += f" {','.join(map(str, levels))}"
    return names, levels, title


def _listed(value: Several) -> list[str | int]:
    if value is None or value == "all":
        return []
    if isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return [value] if isinstance(value, int) else list(value)
