"""Pairs of images of a set, each mixed into one when it is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftcal._framing import Framing
from shiftcal._types import Images, Labels
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import InputError


class MixedImages(ImageSet):
    """Mixtures ``round(ratio a + (1 - ratio) b)`` of two images of another set, in uint8.

    Nothing is mixed before it is read. Images are brought to the size of the model first and mixed
    then. A mixture of which one image cannot be read cannot be read either. It is called by the
    names of both: ``"cat.png+dog.png"``.

    Args:
        whole: The set they are from.
        first: ``(m,)``, which images are ``a``.
        second: ``(m,)``, which are ``b``.
        ratio: How much of ``a`` there is, between 0 and 1.
        labels: ``(m,)``, columns of a model.
        name: As for every set.
    """

    def __init__(
        self,
        whole: ImageSet,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        *,
        ratio: float,
        labels: Labels,
        name: str,
    ) -> None:
        self.whole = whole
        self.first = first
        self.second = second
        self.ratio = ratio
        super().__init__(len(first), name=name, labels=labels)
        self.ready_made = whole.ready_made

    def _image(self, index: int) -> Images:
        a, b = self._pair(index)
        return self._mix(self.whole[a], self.whole[b], index)

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        a = self.whole._images(self.first[indices])
        b = None if a is None else self.whole._images(self.second[indices])
        return None if a is None or b is None else _mixed(a, b, self.ratio)

    def _framed(self, index: int, framing: Framing) -> Images:
        a, b = (self.whole._framed(each, framing) for each in self._pair(index))
        return self._mix(a, b, index)

    def _stored(self, index: int) -> bytes | memoryview:
        a, b = (self.whole._stored(each) for each in self._pair(index))
        return b"".join([repr((self.ratio, len(a))).encode(), a, b])

    def ids(self, indices: Sequence[int] | NDArray[np.intp]) -> list[str]:
        """What these mixtures are called: the names of both images with a ``+`` between."""
        wanted = np.asarray(indices, np.intp)
        both = (self.whole.ids(part[wanted]) for part in (self.first, self.second))
        return [f"{a}+{b}" for a, b in zip(*both, strict=True)]

    def _pair(self, index: int) -> tuple[int, int]:
        return int(self.first[index]), int(self.second[index])

    def _mix(self, a: Images, b: Images, index: int) -> Images:
        if a.shape != b.shape:
            raise InputError(
                f"images must have one size to be mixed: {self.ids([index])[0]} are "
                f"{a.shape[0]} x {a.shape[1]} and {b.shape[0]} x {b.shape[1]}. Say resize and "
                "crop in the preprocessing of the model."
            )
        return _mixed(a, b, self.ratio)


def _mixed(a: NDArray[np.uint8], b: NDArray[np.uint8], ratio: float) -> NDArray[np.uint8]:
    part = np.multiply(a, np.float32(ratio), dtype=np.float32)
    part += np.multiply(b, np.float32(1 - ratio), dtype=np.float32)
    return np.rint(part, out=part).astype(np.uint8)
