"""Frozen features: what a backbone gives for images, clean and corrupted, computed once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal.adaptation._npz_arrays import mapped
from shiftcal.adaptation.feature_model import as_feature_model
from shiftcal.adaptation.image_content import remember_digest
from shiftcal.datasets import as_image_set
from shiftcal.errors import FileError, InputError
from shiftcal.scoring.engines import Engine
from shiftcal.scoring.run import Reporting
from shiftcal.scoring.shard import Condition
from shiftcal.surrogates.build import build_bank
from shiftcal.surrogates.conditions import conditions_of
from shiftcal.surrogates.folder import read_document
from shiftcal.surrogates.synthesize import Options

CLEAN = "clean"


@dataclass(frozen=True, eq=False)
class Frozen:
    """Features of all images of a set, in a folder, clean and at some severities.

    It can be pickled, and opened by as many processes as one likes: nothing is in memory but what
    is asked for.

    Attributes:
        folder: Where they are.
        document: What ``bank.json`` in it says.
        corruption: Name of the corruption whose severities are meant.
    """

    folder: Path
    document: dict[str, Any]
    corruption: str = "pixelate"

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, corruption: str = "pixelate") -> Frozen:
        """Features that :func:`frozen_features` stored.

        Raises:
            FileError: If there are none.
        """
        where = Path(folder)
        return cls(where, read_document(where), corruption)

    def __len__(self) -> int:
        return len(self.features())

    @property
    def n_features(self) -> int:
        """Columns."""
        return int(self.features().shape[1])

    @property
    def identity(self) -> dict[str, Any]:
        """What decides them: the backbone, what computed it, its preprocessing and the images."""
        origin = self.document["origin"]
        told = ("fingerprint", "engine", "preprocessing", "batch_size")
        model = {name: origin["model"][name] for name in told}
        return {**model, "images": origin["images"]["digest"]}

    def features(self, which: str | int = CLEAN) -> NDArray[Any]:
        """Features ``(n, d)``, on disk until they are used.

        Args:
            which: ``"clean"``, which is also severity 0, or a severity.

        Raises:
            FileError: If there are none of it.
        """
        return mapped(self.folder / self._entry(which)["file"], "features")

    def key(self, which: str | int = CLEAN) -> str:
        """A digest of everything that decides these features."""
        return str(self._entry(which)["key"])

    def _entry(self, which: str | int) -> dict[str, Any]:
        corruption, severity = (None, 0) if which in (CLEAN, 0) else (self.corruption, which)
        for entry in self.document["sets"]:
            if (entry["corruption"], entry["severity"]) == (corruption, severity):
                found: dict[str, Any] = entry
                return found
        raise FileError(
            f"{self.folder} has no features of {corruption} at severity {severity}. "
            "frozen_features adds them, given the same folder."
        )


def frozen_features(
    model: object,
    images: object,
    folder: str | os.PathLike[str],
    *,
    corruption: object = "pixelate",
    severities: Sequence[int] = (1, 2, 3, 4, 5),
    engine: Engine | None = None,
    cache: str | os.PathLike[str] | None = None,
    reporting: Reporting | None = None,
) -> Frozen:
    """Have the features of images in a folder, of each corrupted version too.

    The same call goes on where it was broken off, and adds severities to those that are there;
    processes that make them at the same time share the work. Labels do not count.

    Args:
        model: What :func:`as_feature_model` takes: a model that gives features, of any kind, or a
            backbone.
        images: A set of images, or what :func:`shiftcal.datasets.as_image_set` makes one of.
        folder: The folder; made if it is not there.
        corruption: What images are corrupted with, after they are resized and cropped.
        severities: How much; none is the images as they are, only.
        engine: Where the work is done; one worker in this process by default.
        cache: Folder of finished shards, shared between sets; by default that of the environment
            variable ``SHIFTCAL_CACHE``, or none.
        reporting: How progress is told.

    Raises:
        InputError: If an image cannot be read, or the model gives no features.
        FileError: If the folder holds something else, or features of another model or other images.
    """
    opened = as_image_set(images)
    some = list(severities)
    conditions = conditions_of(corruption, some) if some else [Condition()]
    # Banks have labels, which have to be among the model's classes; the features depend on none.
    unlabelled = opened.relabelled(np.zeros(len(opened), np.intp))
    built = build_bank(
        as_feature_model(model),
        unlabelled,
        folder,
        conditions=conditions,
        options=Options(
            features="all", engine=engine, cache=cache, reporting=reporting or Reporting()
        ),
    )
    if built.left_out:
        first = built.left_out[0]
        raise InputError(
            f"every image of {opened.name} must be readable to be trained on; "
            f"{len(built.left_out):,} are not, such as {first['id']}: {first['reason']} Take them "
            "out of the set."
        )
    last = conditions[-1].corruption
    frozen = Frozen.open(folder, corruption="pixelate" if last is None else last.name)
    # Whoever trains on both need not look at the images to see that they belong together.
    origin = frozen.document["origin"]
    remember_digest(opened, origin["shard_size"], origin["images"]["digest"])
    return frozen
