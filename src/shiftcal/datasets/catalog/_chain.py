"""Several sets of images one after the other, as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftcal._types import Images
from shiftcal.datasets.base import ImageSet


class Chain(ImageSet):
    """The images of several sets in order, with their labels and fields.

    Args:
        parts: The sets, at least one; all with labels or all without, and with the same fields
            and classes.
        name: As for every set.
    """

    def __init__(self, parts: Sequence[ImageSet], *, name: str) -> None:
        self.parts = tuple(parts)
        self._starts = np.cumsum([0, *map(len, parts)])
        labels = [part.labels for part in parts if part.labels is not None]
        super().__init__(
            int(self._starts[-1]),
            name=name,
            labels=np.concatenate(labels) if labels else None,
            classes=parts[0].classes,
            fields={
                key: np.concatenate([part.fields[key] for part in parts]) for key in parts[0].fields
            },
        )

    def _image(self, index: int) -> Images:
        part, within = self._find(index)
        return part._image(within)

    def _images(self, indices: NDArray[np.intp]) -> NDArray[np.uint8] | None:
        owners = self._owners(indices)
        if (owners == owners[0]).all():
            part = self.parts[int(owners[0])]
            return part._images(indices - self._starts[owners[0]])
        out: NDArray[np.uint8] | None = None
        for owner in np.unique(owners):
            mine = owners == owner
            made = self.parts[int(owner)]._images(indices[mine] - self._starts[owner])
            if made is None or (out is not None and made.shape[1:] != out.shape[1:]):
                return None
            if out is None:
                out = np.empty((len(indices), *made.shape[1:]), np.uint8)
            out[mine] = made
        return out

    def _stored(self, index: int) -> bytes | memoryview:
        part, within = self._find(index)
        return part._stored(within)

    def _owners(self, indices: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(self._starts, indices, side="right") - 1

    def _find(self, index: int) -> tuple[ImageSet, int]:
        owner = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self.parts[owner], index - int(self._starts[owner])
