"""Images: eight bits a channel, colour last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftcal._checks.arrays import to_array
from shiftcal._types import Images
from shiftcal.errors import InputError

LEAST_SIDE = 8


@dataclass(frozen=True)
class ImageLayout:
    """How images came, so that what is made of them can be given back the same way.

    Attributes:
        shape: The shape that came.
        grey: Whether there was one channel.
    """

    shape: tuple[int, ...]
    grey: bool

    def to_colour(self, images: NDArray[np.uint8]) -> Images:
        """A slice along the first axis of :meth:`batched` images as ``(n, height, width, 3)``."""
        return np.repeat(images[..., None], 3, axis=3) if self.grey else images

    def from_colour(self, images: Images) -> NDArray[np.uint8]:
        """The other way: of grey images the green channel is kept."""
        return images[..., 1] if self.grey else images


def check_images(images: object) -> tuple[NDArray[np.uint8], ImageLayout]:
    """Images as a batch ``(n, height, width, 3)``, or ``(n, height, width)`` if they are grey.

    One image is a batch of one. Nothing is copied, so that a file mapped into memory stays there.

    Raises:
        InputError: If they are not uint8, not of such a shape, smaller than 8 pixels, or if it
            cannot be told whether three grey images or the channels of one came.
    """
    given = _as_array(images)
    if given.dtype != np.uint8:
        raise InputError(_not_uint8(given))
    shape = given.shape
    if given.ndim not in (2, 3, 4):
        raise InputError(_SHAPES + f"; got shape {shape}.")
    last = shape[-1]
    if given.ndim > 2 and last in (1, 3):
        grey = last == 1
        given = given[..., 0] if grey else given
        batch = given if len(shape) == 4 else given[None]
    elif given.ndim == 3 and shape[0] == 3:
        raise InputError(
            f"images must have their channels last; shape {shape} could be one colour image with "
            "its channels first or three grey images. Pass images.transpose(1, 2, 0) for the one, "
            "images[..., None] for the others."
        )
    elif given.ndim == 4 or last < LEAST_SIDE:
        raise InputError(_channels(shape))
    else:
        grey, batch = True, given if given.ndim == 3 else given[None]
    if min(batch.shape[1:3]) < LEAST_SIDE:
        raise InputError(
            f"images must be at least {LEAST_SIDE} pixels high and wide; these are "
            f"{batch.shape[1]} x {batch.shape[2]}. Enlarge them first."
        )
    return batch, ImageLayout(shape, grey)


def _as_array(images: object) -> NDArray[Any]:
    if isinstance(images, np.ma.MaskedArray):
        raise InputError(
            "images must not be masked, since a mask is lost. Pass images.filled(0), or what else "
            "shall stand there."
        )
    if isinstance(images, np.ndarray):
        return images
    mode = getattr(images, "mode", None)
    if mode in ("P", "1", "CMYK", "YCbCr", "HSV", "LAB"):  # Pillow's, not to be taken as they are
        images = images.convert("RGB")  # type: ignore[attr-defined]
    if isinstance(images, (list, tuple)) and len({np.shape(image) for image in images}) > 1:
        raise InputError(
            "images of a list must have one size; these differ. Corrupt them one by one, with "
            "first_index=0, 1, ... for what they would be in a batch."
        )
    return to_array(images, name="images")


_SHAPES = (
    "images must have shape (n, height, width, 3) or (height, width, 3), or the same without the "
    "last axis if they are grey"
)


def _not_uint8(given: NDArray[Any]) -> str:
    came = f"images must be uint8, 0 to 255; got {given.dtype}."
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        return f"{came} They hold NaN or infinity, too: look at where they come from."
    if given.dtype.kind == "f":
        scale = "images" if given.size and given.max() > 1 else "(images * 255)"
        return f"{came} Pass {scale}.round().astype(np.uint8)."
    if given.dtype.kind == "b":
        return f"{came} Pass images.astype(np.uint8) * 255."
    return f"{came} Pass images.astype(np.uint8) if their values lie between 0 and 255."


def _channels(shape: tuple[int, ...]) -> str:
    if len(shape) == 4 and shape[1] in (1, 3):
        return (
            f"images must have their channels last; got shape {shape}. "
            "Pass images.transpose(0, 2, 3, 1)."
        )
    if shape[-1] == 4:
        return (
            f"images must have three channels, red, green and blue; got shape {shape}. "
            "Leave transparency out: images[..., :3]."
        )
    return f"{_SHAPES}; got shape {shape}."
