"""The scored sets of a run on disk."""

from __future__ import annotations

import shlex
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftcal.datasets import calibration_split
from shiftcal.errors import FileError
from shiftcal.files import parsing, read_document, sha256_of, write_document
from shiftcal.scores import read_scores
from shiftcal.studies.plan import CLEAN
from shiftcal.studies.study import Ladder, Target
from shiftcal.surrogates import SurrogateBank, SurrogateSet
from shiftcal.types import Floats, Labels, Logits

PLAN, INDEX = "plan.toml", "scores/index.json"
_FORMAT: dict[str, Any] = {"format": "shiftcal-study-scores", "version": 3}
# Bytes of scores that are kept in memory, since many variants are evaluated on one set.
_KEPT_BYTES = 1 << 30


def repair(folder: Path) -> str:
    """How to make everything a run lacks, and nothing else."""
    plan = folder / PLAN
    name = shlex.quote(str(plan)) if plan.exists() else "PLAN"
    return f"Make it again: shiftcal reproduce {name} -o {shlex.quote(str(folder))}"


@dataclass(frozen=True)
class Entry:
    """Where a set is.

    Attributes:
        file: Its scores, from the folder of the run.
        key: Digest of what made them.
        own: Whether it has its own images, not those of the clean set.
        sha256: Of the file.
    """

    file: str
    key: str
    own: bool
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


class Split(NamedTuple):
    """Sorted rows of the clean set and of its corrupted versions, to calibrate and to test on."""

    calibration: NDArray[np.intp]
    test: NDArray[np.intp]


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
        entries = {name: Entry(**entry) for name, entry in read["sets"].items()}
        train = None if read["train"] is None else Entry(**read["train"])
        return cls(folder, entries, train, read["model"], read["made_of"], images)

    def write(self) -> None:
        """Write the index, whole or not at all."""
        content = {
            "model": self.model,
            "made_of": self.made_of,
            "train": None if self.train is None else asdict(self.train),
            "sets": {name: asdict(entry) for name, entry in self.entries.items()},
        }
        write_document(self.folder / INDEX, content, indent=1, **_FORMAT)

    def scores(self, name: str) -> Stored:
        """The scores of a set.

        Raises:
            FileError: If the file is missing, damaged or replaced.
        """
        found = self._kept.pop(name, None) or self._read(self.entries[name])
        self._kept[name] = found  # used last
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return found

    def train_features(self) -> Floats | None:
        """Features of the training images, ``(m, d)``."""
        return None if self.train is None else self._read(self.train).features

    def split(self, seed: int) -> Split:
        """Which rows are calibrated on and which are tested on, decided by labels and seed."""
        return Split(*calibration_split(self._labels, n=self.images, seed=seed))

    def bank(self, ladder: Ladder, seed: int) -> SurrogateBank:
        """The surrogate sets of a ladder: the calibration rows of a split, or a part of them."""
        rows, labels = self.split(seed).calibration, self._labels
        if ladder.images is not None and ladder.images < len(rows):
            rows = rows[calibration_split(labels[rows], n=ladder.images, seed=seed)[0]]
        sets = []
        for severity, name in zip((0, *ladder.severities), ladder.sets, strict=True):
            stored = self.scores(name)
            sets.append(
                SurrogateSet(
                    stored.logits[rows],
                    labels[rows],
                    name,
                    corruption=ladder.corruption if severity else None,
                    severity=severity,
                    features=None if severity or stored.features is None else stored.features[rows],
                )
            )
        return SurrogateBank(sets)

    def rows(self, target: Target, seed: int) -> Stored:
        """The test rows of a target: all of them if it has its own images."""
        stored = self.scores(target.name)
        if target.natural:
            return stored
        test = self.split(seed).test
        features = None if stored.features is None else stored.features[test]
        return Stored(stored.logits[test], self._labels[test], features)

    @property
    def _labels(self) -> Labels:
        labels = self.scores(CLEAN).labels
        assert labels is not None
        return labels

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


def _size(stored: Stored) -> int:
    return stored.logits.nbytes + (0 if stored.features is None else stored.features.nbytes)
