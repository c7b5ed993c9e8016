"""What both kinds of studies need: alternatives that exist, limits, and scored sets on disk."""

from __future__ import annotations

import os
import shlex
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets import ImageSet, calibration_split
from shiftcal.errors import FileError, InputError, MissingData, MissingExtra
from shiftcal.files import parsing, read_document, sha256_of, write_document
from shiftcal.progress import Reporting
from shiftcal.scores import read_scores
from shiftcal.scoring.engines import Engine
from shiftcal.studies.plan import CLEAN, Ladder, Target
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.types import Floats, Labels, Logits

PLAN, INDEX = "plan.toml", "scores/index.json"
_FORMAT: dict[str, Any] = {"format": "shiftcal-study-scores", "version": 4}
# Bytes of scores that are kept in memory, since many variants are evaluated on one set.
_KEPT_BYTES = 1 << 30
Place = TypeVar("Place")
T = TypeVar("T")


@dataclass(frozen=True)
class Means:
    """How the scoring is done; nothing of it changes a result.

    Attributes:
        engine: Where; default: one worker in this process.
        cache: Folder of finished shards, shared between runs.
        reporting: How progress is shown.
    """

    engine: Engine | None = None
    cache: str | os.PathLike[str] | None = None
    reporting: Reporting = field(default_factory=Reporting)


# --------------------------------------------------------------------------------------
# Models and images
# --------------------------------------------------------------------------------------


class Search:
    """Alternatives tried one after the other; what is missing is collected."""

    def __init__(self) -> None:
        self._missing: list[tuple[str, str, str, bool]] = []

    def first(
        self,
        what: str,
        places: Sequence[Place],
        open_one: Callable[[Place], T],
        fetch: str = "",
        *,
        optional: bool = False,
    ) -> tuple[Place, T] | tuple[None, None]:
        """The first alternative that exists, and what it opens as.

        Raises:
            InputError: If one exists and cannot be used.
        """
        lines = [f"  {what}"]
        for place in places:
            try:
                return place, open_one(place)
            except (MissingData, MissingExtra) as error:
                shown = " + ".join(place) if isinstance(place, tuple) else place
                lines.append(f"    {shown}: {error}")
        self._missing.append((what, "\n".join(lines), fetch, optional))
        return None, None

    def left_out(self, *, skip: bool) -> tuple[str, ...]:
        """What is left out because it is missing.

        Args:
            skip: Whether optional things are left out if they are missing.

        Raises:
            MissingData: Naming everything that is missing and needed.
        """
        if (skip and all(optional for *_, optional in self._missing)) or not self._missing:
            return tuple(text for _, text, _, _ in self._missing)
        needed: dict[str, list[str]] = {}
        for _, text, fetch, _ in self._missing:
            needed.setdefault(fetch, []).append(text)
        blocks = ["the study needs data that is missing:"]
        for fetch, texts in needed.items():
            blocks += [*texts, f"  To get it: {fetch}"] if fetch else texts
        blocks.append("Then run the same command again; or name another folder with --data.")
        names = "; ".join(what for what, _, _, optional in self._missing if optional)
        if names and not skip:
            blocks.append(f"--skip-missing runs without: {names}.")
        raise MissingData("\n".join(blocks))


def check_bins(test: int, bins: int, what: str) -> None:
    """Reject a test set with fewer images than bins of the ECE."""
    if test < bins:
        raise InputError(
            f"{what} must have an image for each of the {bins:,} bins of the ECE, better ten; "
            f"there are {max(test, 0):,}. Lower bins, or leave it out."
        )


def check_labels(images: ImageSet, what: str) -> None:
    """Reject images that cannot be judged."""
    if images.labels is None:
        raise InputError(
            f"{what} must have labels, which the evaluation needs. Name a file of them in the "
            "plan: labels = ..."
        )


def limited(images: ImageSet, limit: int | None, what: str, *, stratified: bool = True) -> ImageSet:
    """A choice of the images, if there are more.

    Args:
        images: All of them.
        limit: How many at most; ``None`` is all.
        what: Their name in messages.
        stratified: Whether every class has its share, if there are labels.
    """
    if limit is None or limit >= len(images):
        return images
    known = images.labels if stratified else None
    labels = np.zeros(len(images), np.intp) if known is None else known
    chosen, _ = calibration_split(labels, n=limit, seed=0)
    return images.subset(chosen, name=f"{limit:,} of {what} ({images.name})")


# --------------------------------------------------------------------------------------
# The scored sets of a run on disk
# --------------------------------------------------------------------------------------


def repair(folder: Path) -> str:
    """How to make everything a run lacks, and nothing else."""
    plan = folder / PLAN
    name = shlex.quote(str(plan)) if plan.exists() else "PLAN"
    return f"Make it again: shiftcal reproduce {name} -o {shlex.quote(str(folder))}"


class Entry(NamedTuple):
    """A file of scores, from the folder of the run, and its SHA-256."""

    file: str
    sha256: str


class Stored(NamedTuple):
    """A scored set.

    Attributes:
        logits: ``(n, k)``.
        labels: ``(n,)``; ``None`` for the training images, whose labels nobody needs.
        features: ``(n, d)``, if the model gave them.
    """

    logits: Logits
    labels: Labels | None
    features: Floats | None

    def part(self, rows: NDArray[np.intp]) -> Stored:
        """Some of the rows."""
        parts = (None if each is None else each[rows] for each in self)
        return Stored(*parts)  # type: ignore[arg-type]

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the model's class is correct, row by row."""
        correct: NDArray[np.bool_] = self.logits.argmax(axis=1) == self.labels
        return correct


@dataclass(frozen=True, eq=False)
class Archive:
    """The scored sets of a run.

    Attributes:
        folder: Of the run.
        entries: The sets by name.
        train: The training images' scores, if there are any.
        model: What is known of the model.
        made_of: Digest of what the plan says about model and images.
        images: How many of the images are calibrated on; the others are tested on.
    """

    folder: Path
    entries: dict[str, Entry]
    train: Entry | None = None
    model: dict[str, Any] = field(default_factory=dict)
    made_of: str = ""
    images: int = 0
    _kept: OrderedDict[str, Stored] = field(default_factory=OrderedDict, repr=False)

    @classmethod
    def open(cls, folder: Path, images: int = 0) -> Archive:
        """The archive of a run whose sets are all scored.

        Args:
            folder: Of the run.
            images: How many of the images are calibrated on.

        Raises:
            FileError: If it is missing or damaged.
        """
        read = read_document(folder / INDEX, "an index of scores", fix=repair(folder), **_FORMAT)
        entries = {name: Entry(*entry) for name, entry in read["sets"].items()}
        train = read["train"] and Entry(*read["train"])
        return cls(folder, entries, train, read["model"], read["made_of"], images)

    def write(self) -> None:
        """Write the index, whole or not at all."""
        about: dict[str, Any] = {"model": self.model, "made_of": self.made_of}
        content = {**about, "train": self.train, "sets": self.entries}
        write_document(self.folder / INDEX, content, indent=1, **_FORMAT)

    def scores(self, name: str) -> Stored:
        """The scores of a set.

        Raises:
            FileError: If the file is missing, damaged or replaced.
        """
        found = self._kept.pop(name, None) or self._read(self.entries[name])
        self._kept[name] = found  # used last
        arrays = (each for stored in self._kept.values() for each in stored if each is not None)
        if len(self._kept) > 1 and sum(each.nbytes for each in arrays) > _KEPT_BYTES:
            self._kept.popitem(last=False)  # the oldest
        return found

    def train_features(self) -> Floats | None:
        """Features of the training images, ``(m, d)``."""
        return None if self.train is None else self._read(self.train).features

    def split(self, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Sorted rows to calibrate on and to test on, decided by labels and seed."""
        return calibration_split(self.scores(CLEAN).labels, n=self.images, seed=seed)

    def bank(self, ladder: Ladder, seed: int) -> SurrogateBank:
        """The surrogate sets of a ladder: the calibration rows of a split, or a part of them."""
        rows, _ = self.split(seed)
        if ladder.images is not None and ladder.images < len(rows):
            labels = self.scores(CLEAN).part(rows).labels
            rows = rows[calibration_split(labels, n=ladder.images, seed=seed)[0]]
        _, labels, features = self.scores(CLEAN).part(rows)
        assert labels is not None
        sets = []
        for severity, name in zip((0, *ladder.severities), ladder.sets, strict=True):
            logits = self.scores(name).logits[rows]
            made_by = {"corruption": ladder.corruption} if severity else {"features": features}
            sets.append(SurrogateSet(logits, labels, name, severity=severity, **made_by))
        return SurrogateBank(sets)

    def rows(self, target: Target, seed: int) -> Stored:
        """The test rows of a target: all of them if it has its own images."""
        stored = self.scores(target.name)
        return stored if target.natural else stored.part(self.split(seed)[1])

    def _read(self, entry: Entry) -> Stored:
        file, fix = self.folder / entry.file, repair(self.folder)
        with parsing(file, "scores", fix=fix):
            if not file.exists() or sha256_of(file) != entry.sha256:
                raise FileError(f"{file} is missing, damaged or was replaced. {fix}")
            found = read_scores(file)
            return Stored(found.logits(), found.labels, found.features)

    def __getstate__(self) -> dict[str, Any]:
        # A worker that was started before may be in another folder than this process is by now.
        return {**self.__dict__, "folder": self.folder.absolute(), "_kept": OrderedDict()}
