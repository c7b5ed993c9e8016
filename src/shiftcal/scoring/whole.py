"""The whole that a part is of: the same on every machine that does a part of it."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property

import numpy as np

from shiftcal._types import Labels
from shiftcal.scoring.job import Job
from shiftcal.scoring.labels import digest_of_labels
from shiftcal.scoring.names import digest_of_names
from shiftcal.scoring.statistics.part import Part

# Images whose content is looked at: sets corrupted otherwise have the same names and labels.
_SAMPLE = 64


class Whole:
    """All images of a job, of which it may do a part.

    Args:
        job: The job.
        part: Which part of how many it does, counted from 1; ``None`` if it does all.
    """

    def __init__(self, job: Job, part: tuple[int, int] | None) -> None:
        self._job = job
        self._which = part

    def around(self, labels: Labels | None, part: tuple[int, int] | None) -> str:
        """A digest of what is in a file beside the outputs of the model.

        Args:
            labels: Of all images as columns of the logits, if known.
            part: Which part the file holds; ``None`` for all.
        """
        return _digest([digest_of_labels(labels), self._names, self._job.work.model.classes, part])

    @cached_property
    def part(self) -> Part | None:
        """What a file says of its part; ``None`` if it is not one.

        Machines may differ in what they run the model with. What they must have in common is
        model, preprocessing and options, the number, names and labels of all images, and the
        content of some images from all over the set.
        """
        if self._which is None:
            return None
        job, images = self._job, self._job.work.images
        n = len(images)
        sample = np.unique(np.linspace(0, n - 1, _SAMPLE).astype(np.intp))
        key = _digest(
            {
                "model": job.model_id["fingerprint"],
                "preprocessing": job.model_id["preprocessing"],
                "dtype": job.work.dtype,
                "shard_size": job.shard_size,
                "names": self._names,
                "labels": digest_of_labels(images.labels),
                "classes": images.classes,
                "sample": images.digest(sample),
            }
        )
        return Part(*self._which, *job.span, n_images=n, key=key)

    @cached_property
    def _names(self) -> str | None:
        return digest_of_names(self._job.work.images)


def _digest(told: object) -> str:
    text = json.dumps(told, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
