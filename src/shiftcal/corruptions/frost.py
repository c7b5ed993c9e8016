"""Frost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, final

import numpy as np

from shiftcal._types import Images
from shiftcal.corruptions._frost_pictures import Pictures
from shiftcal.corruptions.base import Corruption, Keys, Settings
from shiftcal.errors import InputError


@final
class Frost(Corruption):
    """Ice crystals on the lens: ``a x + b t``, with a crop ``t`` of a picture of frost.

    A setting is ``(a, b, scale)``. One of five pictures of frost is drawn, a place in the picture
    at ``scale`` times its size, and what the image's height and width cut out there is added to
    it, in grey levels, stopped at 255 and cut to whole levels.

    The published pictures are photographs that may not be passed on. By default they are
    replaced by textures made for the purpose, with the same mean, colour, deviation and roughness;
    results are close to those with the photographs but not comparable with them to the last point.
    These textures join at their edges, so that a crop can lie anywhere and be of any size. As the
    image is also made darker, an image may change more at one severity than at the next.

    With ``photos`` it is the published recipe with its odd sides: of six photographs the last is
    never drawn; pictures are made smaller without smoothing, so that at a scale of 0.2 every
    fifth pixel is taken; the last row and the last column of places are never drawn; and images
    must be smaller than every photograph at that scale.

    Args:
        photos: A folder with photographs of frost, taken in the order of their names. Needs
            Pillow, from ``pip install 'shiftcal[images]'``.
    """

    group = "weather"
    monotone = False
    settings = Settings(
        cifar=((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
        tiny_imagenet=(
            (1, 0.3, 0.3),
            (0.9, 0.4, 0.3),
            (0.8, 0.45, 0.3),
            (0.75, 0.5, 0.3),
            (0.7, 0.55, 0.3),
        ),
        imagenet=((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
    )

    def __init__(self, *, photos: str | os.PathLike[str] | None = None) -> None:
        from shiftcal.corruptions._frost_photos import photo_files

        self.photos = None if photos is None else Path(photos)
        if self.photos is not None:
            photo_files(self.photos)

    @property
    def kind(self) -> Literal["procedural", "photos"]:
        """Where its pictures of frost come from."""
        return "procedural" if self.photos is None else "photos"

    @property
    def description(self) -> str:
        """The name with the kind, for results of the two must not be taken for one another."""
        return f"{self.name} ({self.kind})"

    @property
    def identity(self) -> str | None:
        """The description, with a digest of the photographs if they are given."""
        found = super().identity
        if self.photos is None or found is None:
            return found
        from shiftcal.corruptions._frost_photos import photos_digest

        return f"{found[:-1]}, sha256 {photos_digest(self.photos)[:16]})"

    def _attributes(self) -> dict[str, Any]:
        """The photographs count by their content, not by their place."""
        return {name: value for name, value in vars(self).items() if name != "photos"}

    @property
    def keeps_plan(self) -> bool:
        """Photographs may be exchanged in their folder; they are kept where that is looked at."""
        return self.photos is None

    def _plan(self, setting: Any, height: int, width: int) -> Any:
        own, other, scale = setting
        texels, starts, sizes = self._pictures(scale)
        places = sizes if self.photos is None else sizes - (height, width)
        if places.min() < 1:
            least = " x ".join(str(side) for side in sizes.min(axis=0))
            raise InputError(
                f"photos: images of {height} x {width} pixels do not fit into photos of frost that "
                f"are {least} at a scale of {scale}. Use larger photos or smaller images"
            )
        return texels, np.column_stack([starts, sizes, places]), (float(own), float(other))

    def _pictures(self, scale: float) -> Pictures:
        if self.photos is None:
            from shiftcal.corruptions._frost_textures import frost_textures

            return frost_textures(scale)
        from shiftcal.corruptions._frost_photos import frost_photos

        return frost_photos(self.photos, scale)

    def _apply(self, images: Images, out: Images, plan: Any, keys: Keys) -> None:
        from shiftcal.corruptions._kernels.frost_kernels import blend

        rows = (*images.shape[:2], -1)
        texels, textures, weights = plan
        blend(images.reshape(rows), out.reshape(rows), texels, textures, weights, keys)
