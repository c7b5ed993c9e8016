"""Which images a set holds, by content: digests, told as they are made, and remembered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from shiftcal._types import Images
from shiftcal.datasets import ImageSet
from shiftcal.numerics._threads import thread_count
from shiftcal.scoring.complete import Step
from shiftcal.scoring.progress import showing
from shiftcal.scoring.run import Reporting

# Where a set keeps them: an attribute travels to the processes that the set is sent to.
_KEPT = "_digests_in_shards"


def content_digest(images: ImageSet, reporting: Reporting) -> str:
    """A digest of all images, each of which is read from the disk."""
    with _told(images, reporting) as counted:
        return counted.digest(np.arange(len(images)), threads=thread_count())


def digest_in_shards(images: ImageSet, size: int, reporting: Reporting) -> str:
    """The same as scoring makes it, shard by shard; read once, however often it is asked of a set.

    Args:
        images: The images; they are not to change from now on.
        size: Images in a shard.
        reporting: How progress is told.
    """
    kept: dict[int, str] = vars(images).get(_KEPT, {})
    if size not in kept:
        whole = hashlib.blake2b(digest_size=16)
        with _told(images, reporting) as counted:
            for start in range(0, len(images), size):
                rows = np.arange(start, min(start + size, len(images)))
                whole.update(counted.digest(rows, threads=thread_count()).encode())
        remember_digest(images, size, whole.hexdigest())
        return whole.hexdigest()
    return kept[size]


def remember_digest(images: ImageSet, size: int, digest: str) -> None:
    """Have a digest that scoring has just found, or compared, not be made again."""
    vars(images)[_KEPT] = {**vars(images).get(_KEPT, {}), size: digest}


@contextmanager
def _told(images: ImageSet, reporting: Reporting) -> Iterator[ImageSet]:
    """The same set, which tells how many of its images were looked at."""
    doing = f"looking at {images.name}"
    with showing(doing, len(images), shown=reporting.shown, line=reporting.line) as step:
        yield _Counted(images, step)


class _Counted(ImageSet):
    def __init__(self, images: ImageSet, step: Step) -> None:
        super().__init__(len(images), name=images.name)
        self._whole, self._step = images, step

    def _image(self, index: int) -> Images:
        return self._whole._image(index)

    def _stored(self, index: int) -> bytes | memoryview:
        stored = self._whole._stored(index)
        self._step(1, kept=False)
        return stored
