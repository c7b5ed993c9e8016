"""Data sets of several domains, ``<domain>/<class>/<file>``, and the spellings of copies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from shiftcal._checks import check_choice
from shiftcal.datasets.containers.files import FileImages
from shiftcal.datasets.image_files import find_images
from shiftcal.errors import FileError, MissingData

# Files relative to the folder of a domain, and the class of each.
Entries = tuple[Sequence[str | os.PathLike[str]], Sequence[int]]


@dataclass(frozen=True)
class DomainFolders:
    """How one data set is laid out.

    Capitals, spaces, ``_`` and ``-`` in the names of folders do not matter. A copy need not have
    every class: indices are those of the whole data set.

    Attributes:
        title: Its name in print.
        domains: Names of the domains, in the order in which they come together.
        classes: Names of the classes, in the order of their indices.
        inside: Folders below the root that the domains may be in.
        also: Other names of class folders, spelled like :func:`loose` does, and what they mean.
    """

    title: str
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    inside: tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)

    def load(self, root: str | os.PathLike[str], domain: str | None) -> FileImages:
        """One domain, or all of them, by the class folders."""
        folders = self.find(root, domain)
        return self.gathered({name: (at, self.by_folder(at)) for name, at in folders.items()})

    def find(self, root: str | os.PathLike[str], domain: str | None) -> dict[str, Path]:
        """The folder of a domain, or of each if ``domain`` is ``None``, by its name.

        Raises:
            UnknownName: If there is no such domain.
            MissingData: If no domain that is asked for is there.
            FileError: If one of them is not, or it cannot be told which folder is meant.
        """
        wanted = self.domains
        if domain is not None:
            known = {loose(name): name for name in self.domains}
            meant = known.get(loose(domain), domain) if isinstance(domain, str) else domain
            wanted = (check_choice(meant, self.domains, name="domain"),)
        base = Path(root)
        if not base.is_dir():
            raise MissingData(f"{base} is not a folder; {self.title} is read from one.")
        found: dict[str, Path] = {}
        for place in (base, *(base / name for name in self.inside)):
            found = self._domains_in(place)
            if found:
                break
        missing = [name for name in wanted if name not in found]
        if missing:
            kind = MissingData if len(missing) == len(wanted) else FileError
            raise kind(_missing(base, missing, found, self))
        return {name: found[name] for name in wanted}

    def by_folder(self, folder: Path) -> Entries:
        """Every image of a domain, sorted, with the class by the folder it is in.

        Raises:
            MissingData: If there is none.
            FileError: If one is outside the folders of the classes.
        """
        files = find_images(folder)
        return files, [self.index_of(folder, file) for file in files]

    def index_of(self, folder: Path, file: Path) -> int:
        """The class of an image by the first folder of its path.

        Raises:
            FileError: If it is in none, or the folder is not that of a class.
        """
        if len(file.parts) < 2:
            raise FileError(
                f"{folder / file} must be in the folder of a class, such as "
                f"{folder / self.classes[0]}. Move it there, or away."
            )
        index = self._indices.get(loose(file.parts[0]))
        if index is None:
            raise FileError(
                f"{folder / file.parts[0]} is not the folder of a class of {self.title}, which "
                f"are {', '.join(self.classes)}. Move it away."
            )
        return index

    def gathered(self, parts: Mapping[str, tuple[Path, Entries]], *, split: str = "") -> FileImages:
        """Images of some domains together, one after the other.

        Args:
            parts: The folder of each domain and what is in it.
            split: Which part of the domains this is, for the name of the set.
        """
        files: list[Path] = []
        labels: list[int] = []
        fields: list[str] = []
        for domain, (folder, (names, classes)) in parts.items():
            files += [Path(folder.name, name) for name in names]
            labels += classes
            fields += [domain] * len(classes)
        words = (self.title, next(iter(parts)) if len(parts) == 1 else "", split)
        return FileImages(
            next(iter(parts.values()))[0].parent,
            files,
            name=" ".join(word for word in words if word),
            labels=labels,
            classes=self.classes,
            fields={"domain": fields},
        )

    def _domains_in(self, place: Path) -> dict[str, Path]:
        found: dict[str, Path] = {}
        by_name = {loose(name): name for name in self.domains}
        for folder in sorted(place.iterdir()) if place.is_dir() else ():
            name = by_name.get(loose(folder.name))
            if name is None or not folder.is_dir():
                continue
            if name in found:
                raise FileError(
                    f"{place} must hold one folder for {name}; it holds {found[name].name!r} and "
                    f"{folder.name!r}. Move one of them away."
                )
            found[name] = folder
        return found

    @cached_property
    def _indices(self) -> dict[str, int]:
        indices = {loose(name): index for index, name in enumerate(self.classes)}
        return indices | {name: self.classes.index(means) for name, means in self.also.items()}


def loose(name: str) -> str:
    """A name without what copies spell in different ways."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _missing(
    base: Path, missing: Sequence[str], found: Mapping[str, Path], layout: DomainFolders
) -> str:
    if not found:
        return (
            f"{base} holds no domain of {layout.title}: there is no folder called "
            f"{', '.join(map(repr, layout.domains))}. Name the folder that they are in."
        )
    one = "folder" if len(missing) == 1 else "folders"
    return (
        f"{base} has no {one} {', '.join(map(repr, missing))} of {layout.title}; it has "
        f"{', '.join(map(repr, found))}. Say domain= for one that is there, or complete it."
    )
