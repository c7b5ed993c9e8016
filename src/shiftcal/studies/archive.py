"""The scored sets of a run, read from disk when they are asked for."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._files import atomic_write
from shiftcal._types import Floats, Labels, Logits
from shiftcal.datasets import calibration_split
from shiftcal.errors import FileError, InputError
from shiftcal.scores import read_scores
from shiftcal.studies.again import repair
from shiftcal.studies.variant import CLEAN
from shiftcal.surrogates.folder import digest_of

INDEX = "scores/index.json"
_FORMAT = "shiftcal-study-scores"
_VERSION = 1
# Bytes of scores that are kept in memory, since many variants are evaluated on one set.
_KEPT_BYTES = 1 << 30


@dataclass(frozen=True)
class Entry:
    """Where a set is.

    Attributes:
        file: Its scores, from the folder of the run.
        key: Digest of what made them.
        own: Whether it has images of its own, not those of the clean set.
        sha256: Of the file, as it was scored; empty if nobody knows it.
    """

    file: str
    key: str
    own: bool = False
    sha256: str = ""

    def __post_init__(self) -> None:
        told = (self.file, self.key, self.sha256)
        if not all(isinstance(each, str) for each in told) or type(self.own) is not bool:
            raise TypeError("an entry of the index")


@dataclass(frozen=True, eq=False)
class Stored:
    """A scored set.

    Attributes:
        logits: ``(n, k)``.
        labels: ``(n,)``; ``None`` for the training images, whose labels nobody needs.
        features: ``(n, d)``, if the model gave them.
    """

    logits: Logits
    labels: Labels | None
    features: Floats | None


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of the clean set and of its corrupted versions, both sorted.

    Attributes:
        calibration: To calibrate on.
        test: To test on.
    """

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
        made_of: Digests of what a plan says about the sets, as they were scored.
    """

    folder: Path
    entries: dict[str, Entry]
    train: Entry | None = None
    model: dict[str, Any] = field(default_factory=dict)
    made_of: dict[str, str] = field(default_factory=dict)
    _kept: OrderedDict[str, Stored] = field(default_factory=OrderedDict, repr=False)
    _checked: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def open(cls, folder: Path) -> Archive:
        """The archive of a run whose sets are all scored.

        Raises:
            FileError: If it is not there, or damaged.
        """
        file = folder / INDEX
        try:
            told = json.loads(file.read_text("utf-8"))
        except OSError as error:
            raise FileError(
                f"{folder} has no finished scores: {file} could not be read "
                f"({error.strerror or error}). Go on with the study: {repair(folder)}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise FileError(
                f"{file} is damaged: not JSON ({error}). Have it written again: {repair(folder)}"
            ) from error
        try:
            if told["format"] != _FORMAT or told["version"] > _VERSION:
                raise FileError(
                    f"{file} is of another kind, or written by a newer shiftcal: format "
                    f"{told['format']}, version {told['version']}."
                )
            train = None if told["train"] is None else Entry(**told["train"])
            entries = {name: Entry(**entry) for name, entry in told["sets"].items()}
            return cls(folder, entries, train, told["model"], dict(told.get("made_of", {})))
        except FileError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(
                f"{file} is damaged: it is JSON, and not the list of scores that a study writes. "
                f"Have it written again: {repair(folder)}"
            ) from error

    def write(self) -> None:
        """Write the index, whole or not at all."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "model": self.model,
            "made_of": self.made_of,
            "train": None if self.train is None else vars(self.train),
            "sets": {name: vars(entry) for name, entry in self.entries.items()},
        }
        with atomic_write(self.folder / INDEX) as temporary:
            temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def scores(self, name: str) -> Stored:
        """The scores of a set.

        Raises:
            FileError: If the file is missing, damaged or another than was scored.
        """
        found = self._kept.pop(name, None)
        if found is not None:
            self._kept[name] = found  # used last
        else:
            if name not in self.entries:
                raise FileError(
                    f"{self.folder} has no scores of {name}. Run the plan that asks for them: "
                    f"{repair(self.folder)}"
                )
            found = self._read(self.entries[name])
            self._kept[name] = found
            while sum(_size(each) for each in self._kept.values()) > _KEPT_BYTES:
                self._kept.popitem(last=False)
        return found

    def train_features(self) -> Floats | None:
        """Features of the training images, ``(m, d)``."""
        return None if self.train is None else self._read(self.train).features

    def split(self, seed: int, images: int) -> Split:
        """Which rows are calibrated on and which are tested on, decided by labels and seed."""
        labels = self.scores(CLEAN).labels
        assert labels is not None
        return Split(*calibration_split(labels, n=images, seed=seed))

    def _read(self, entry: Entry) -> Stored:
        file = self.folder / entry.file
        if entry.file not in self._checked:
            self._check(file, entry.sha256)
            self._checked.add(entry.file)
        try:
            found = read_scores(file)
            return Stored(found.logits(), found.labels, found.features)
        except (FileError, InputError) as error:
            raise FileError(f"{error} Have it scored again: {repair(self.folder)}") from error

    def _check(self, file: Path, sha256: str) -> None:
        """Refuse a file that is not the one that was scored."""
        try:
            found = digest_of(file)
        except OSError as error:
            raise FileError(
                f"{file}, scores of this study, could not be read: {error.strerror or error}. "
                f"Have them made again: {repair(self.folder)}"
            ) from error
        if sha256 and found != sha256:
            raise FileError(
                f"{file} is damaged or was replaced: its checksum is not that of the scores that "
                f"the study stored. Have them made again: {repair(self.folder)}"
            )

    def __getstate__(self) -> dict[str, Any]:
        # A worker that was started before may be in another folder than this process is by now.
        return {
            **self.__dict__,
            "folder": self.folder.absolute(),
            "_kept": OrderedDict(),
            "_checked": set(),
        }


def _size(stored: Stored) -> int:
    features = 0 if stored.features is None else stored.features.nbytes
    return stored.logits.nbytes + features
