"""Several sets of images one after the other, as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftcal._framing import Framing
from shiftcal._types import Images
from shiftcal.datasets.base import ImageSet
from shiftcal.errors import InputError


class ChainImages(ImageSet):
    """The images of several sets in order, with their labels and fields.

    Each is read by the set it is in. They are called by the field ``id`` if the sets have it, else
    by their number in the chain, since sets may call different images the same.

    Args:
        parts: The sets, at least one; all with labels or all without, and with the same fields
            and classes.
        name: As for every set.

    Raises:
        InputError: If there is none, or they are not alike in these.
    """

    def __init__(self, parts: Sequence[ImageSet], *, name: str) -> None:
        self.parts = tuple(parts)
        _check_alike(self.parts, name)
        self._starts = np.cumsum([0, *map(len, self.parts)])
        labels = [part.labels for part in self.parts if part.labels is not None]
        first = self.parts[0]
        super().__init__(
            int(self._starts[-1]),
            name=name,
            labels=np.concatenate(labels) if labels else None,
            classes=first.classes,
            fields={
                key: np.concatenate([part.fields[key] for part in self.parts])
                for key in first.fields
            },
        )
        sides = {part.ready_made for part in self.parts}
        self.ready_made = sides.pop() if len(sides) == 1 else None

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

    def _framed(self, index: int, framing: Framing) -> Images:
        part, within = self._find(index)
        return part._framed(within, framing)

    def _stored(self, index: int) -> bytes | memoryview:
        part, within = self._find(index)
        return part._stored(within)

    def _owners(self, indices: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(self._starts, indices, side="right") - 1

    def _find(self, index: int) -> tuple[ImageSet, int]:
        owner = int(np.searchsorted(self._starts, index, side="right")) - 1
        return self.parts[owner], index - int(self._starts[owner])


def _check_alike(parts: Sequence[ImageSet], name: str) -> None:
    if not parts:
        raise InputError(f"{name} must consist of at least one set of images; got none.")
    first = parts[0]
    for part in parts[1:]:
        if (part.labels is None) != (first.labels is None):
            raise InputError(
                f"{name} must consist of sets that all have labels, or none of them; "
                f"{first.name} and {part.name} differ in that. Take them away with "
                "relabelled(None), or give them."
            )
        if part.classes != first.classes:
            raise InputError(
                f"{name} must consist of sets with the same classes in the same order; those of "
                f"{first.name} and {part.name} differ. Bring the labels to one list of names with "
                "relabelled(labels, classes=...)."
            )
        if part.fields.keys() != first.fields.keys():
            raise InputError(
                f"{name} must consist of sets with the same fields; {first.name} has "
                f"{_listed(first)}, {part.name} has {_listed(part)}."
            )


def _listed(part: ImageSet) -> str:
    return ", ".join(sorted(part.fields)) or "none"
