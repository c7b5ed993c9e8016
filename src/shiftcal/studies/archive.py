"""The scored sets of a run on disk."""

from __future__ import annotations

import json
import shlex
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError

from shiftcal.datasets import calibration_split
from shiftcal.errors import FileError, InputError
from shiftcal.files import atomic_write
from shiftcal.scores import read_scores
from shiftcal.studies.plan import CLEAN
from shiftcal.surrogates.folder import digest_of
from shiftcal.types import Floats, Labels, Logits

PLAN, INDEX = "plan.toml", "scores/index.json"
_FORMAT, _VERSION = "shiftcal-study-scores", 2
# Bytes of scores that are kept in memory, since many variants are evaluated on one set.
_KEPT_BYTES = 1 << 30


def repair(folder: Path) -> str:
    """The command that makes everything a run lacks, and nothing else."""
    plan = folder / PLAN
    name = shlex.quote(str(plan)) if plan.exists() else "PLAN"
    return f"shiftcal reproduce {name} -o {shlex.quote(str(folder))}"


def write_json(file: Path, document: Any) -> None:
    """Write a JSON document, whole or not at all."""
    with atomic_write(file) as temporary:
        temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


@dataclass(frozen=True)
class Entry:
    """Where a set is.

    Attributes:
        file: Its scores, from the folder of the run.
        key: Digest of what made them.
        own: Whether it has its own images, not those of the clean set.
        sha256: Of the file.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    file: str
    key: str
    own: bool = False
    sha256: str = ""


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
    """Sorted rows of the clean set and of its corrupted versions.

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
        made_of: Digest of what the plan says about model and images.
    """

    folder: Path
    entries: dict[str, Entry]
    train: Entry | None = None
    model: dict[str, Any] = field(default_factory=dict)
    made_of: str = ""
    _kept: OrderedDict[str, Stored] = field(default_factory=OrderedDict, repr=False)
    _checked: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def open(cls, folder: Path) -> Archive:
        """The archive of a run whose sets are all scored.

        Raises:
            FileError: If it is missing or damaged.
        """
        file = folder / INDEX
        try:
            document = json.loads(file.read_text("utf-8"))
            if document["format"] != _FORMAT or document["version"] != _VERSION:
                raise ValueError("another format or version")
            entries = TypeAdapter(dict[str, Entry]).validate_python(document["sets"])
            train = TypeAdapter(Entry | None).validate_python(document["train"])
            return cls(folder, entries, train, dict(document["model"]), str(document["made_of"]))
        except OSError as error:
            raise FileError(
                f"{folder} has no finished scores: {file} could not be read "
                f"({error.strerror or error}). Continue the study: {repair(folder)}"
            ) from error
        except (ValueError, KeyError, TypeError, RecursionError, ValidationError) as error:
            raise FileError(
                f"{file} is damaged, or from another version of shiftcal. Write it again: "
                f"{repair(folder)}"
            ) from error

    def write(self) -> None:
        """Write the index, whole or not at all."""
        write_json(
            self.folder / INDEX,
            {
                "format": _FORMAT,
                "version": _VERSION,
                "model": self.model,
                "made_of": self.made_of,
                "train": None if self.train is None else vars(self.train),
                "sets": {name: vars(entry) for name, entry in self.entries.items()},
            },
        )

    def scores(self, name: str) -> Stored:
        """The scores of a set.

        Raises:
            FileError: If the file is missing, damaged or replaced.
        """
        found = self._kept.pop(name, None)
        if found is None:
            if name not in self.entries:
                raise FileError(
                    f"{self.folder} has no scores of {name}. Run the plan again: "
                    f"{repair(self.folder)}"
                )
            found = self._read(self.entries[name])
        self._kept[name] = found  # used last
        while sum(map(_size, self._kept.values())) > _KEPT_BYTES:
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
        try:
            if entry.file not in self._checked:
                if entry.sha256 and digest_of(file) != entry.sha256:
                    raise FileError(
                        f"{file} is damaged or was replaced: its checksum differs from that of the "
                        "scores that the study stored."
                    )
                self._checked.add(entry.file)
            found = read_scores(file)
            return Stored(found.logits(), found.labels, found.features)
        except OSError as error:
            raise FileError(
                f"{file} could not be read: {error.strerror or error}. Make it again: "
                f"{repair(self.folder)}"
            ) from error
        except (FileError, InputError) as error:
            raise FileError(f"{error} Make it again: {repair(self.folder)}") from error

    def __getstate__(self) -> dict[str, Any]:
        # A worker that was started before may be in another folder than this process is by now.
        kept: dict[str, Any] = {"_kept": OrderedDict(), "_checked": set()}
        return {**self.__dict__, "folder": self.folder.absolute(), **kept}


def _size(stored: Stored) -> int:
    features = 0 if stored.features is None else stored.features.nbytes
    return stored.logits.nbytes + features
