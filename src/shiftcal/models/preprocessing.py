"""What happens to images before a model sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shiftcal.checks import check_choice, check_count
from shiftcal.errors import InputError
from shiftcal.files import Framing
from shiftcal.types import Images

_PLAIN_MEAN, _PLAIN_STD = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
_CHOICES = {
    "interpolation": ("bilinear", "bicubic"),
    "layout": ("nchw", "nhwc"),
    "dtype": ("float32", "float16", "uint8"),
}
# Weights of red, green and blue in grey (ITU-R 601), in 65,536ths, as in Pillow.
_LUMA = np.array([19595, 38470, 7471], np.uint32)


@dataclass(frozen=True)
class Preprocessing:
    """From 8-bit images to what a network takes: resize, crop, ``(x / 255 - mean) / std``, layout.

    Attributes:
        resize: New length of the shorter side, or ``(height, width)``, or ``None``.
        crop: Side of the square cut from the centre after that, or ``None``.
        interpolation: How images are resized, ``"bilinear"`` or ``"bicubic"``, with antialiasing.
        mean: Subtracted from each channel of pixels between 0 and 1; a number for each channel.
        std: What each channel is divided by then.
        layout: ``"nchw"``, channels first, or ``"nhwc"``, channels last.
        dtype: ``"float32"`` or ``"float16"``; ``"uint8"`` leaves pixels from 0 to 255 as they are.
        channels: 3, or 1 for a network that takes grey images: the luma
            ``0.299 r + 0.587 g + 0.114 b``, rounded as Pillow does. ``mean`` and ``std`` are one
            number then.
    """

    resize: int | tuple[int, int] | None = None
    crop: int | None = None
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    mean: tuple[float, ...] = _PLAIN_MEAN
    std: tuple[float, ...] = _PLAIN_STD
    layout: Literal["nchw", "nhwc"] = "nchw"
    dtype: Literal["float32", "float16", "uint8"] = "float32"
    channels: Literal[1, 3] = 3

    def __post_init__(self) -> None:
        if check_count(self.channels, name="channels") not in (1, 3):
            raise InputError(f"channels must be 3, or 1 for grey; got {self.channels}.")
        if self.resize is not None:
            object.__setattr__(self, "resize", _sides(self.resize))
        if self.crop is not None:
            object.__setattr__(self, "crop", check_count(self.crop, name="crop"))
        for name, plain in (("mean", _PLAIN_MEAN), ("std", _PLAIN_STD)):
            values = getattr(self, name)
            values = plain[: self.channels] if values in (plain, plain[:1]) else values
            object.__setattr__(self, name, _per_channel(values, self.channels, name=name))
        for name, choices in _CHOICES.items():
            check_choice(getattr(self, name), choices, name=name)
        if min(self.std) <= 0:
            raise InputError(f"std must be positive in every channel; got {self.std}.")
        if self.dtype == "uint8" and (set(self.mean), set(self.std)) != ({0.0}, {1.0}):
            raise InputError(
                "mean and std must be left out with dtype 'uint8', which keeps pixels as they are; "
                f"got mean {self.mean}, std {self.std}. Set dtype='float32', or leave them out."
            )

    @property
    def framing(self) -> Framing:
        """The part of it that brings images to one size; the rest is :meth:`numbers`."""
        return Framing(self.resize, self.crop, self.interpolation)

    def apply(self, images: Images) -> NDArray[Any]:
        """The input of the model for these images.

        Args:
            images: ``(n, height, width, 3)``, uint8; not changed.

        Returns:
            ``(n, channels, h, w)`` or ``(n, h, w, channels)`` of :attr:`dtype`, contiguous.
        """
        return self.numbers(self.framing.of_images(images))

    def numbers(self, images: Images) -> NDArray[Any]:
        """The input of the model for images that have their size already; see :meth:`apply`."""
        if self.channels == 1:
            images = _grey(images)
        if self.layout == "nchw":
            images = images.transpose(0, 3, 1, 2)
        if self.dtype == "uint8":
            return images.copy()  # the model may write into it
        # A pixel has 256 values: each is computed once and looked up.
        pixels = np.arange(256, dtype=np.float32)[:, None] / np.float32(255)
        table = (pixels - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        table = np.ascontiguousarray(table.T).astype(self.dtype)
        batch = np.empty(images.shape, self.dtype)
        axis = 1 if self.layout == "nchw" else 3
        for values, source, target in zip(
            table, np.moveaxis(images, axis, 0), np.moveaxis(batch, axis, 0), strict=True
        ):
            target[...] = values[source]
        return batch

    def to_dict(self) -> dict[str, Any]:
        """Every setting, as JSON can hold it."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Preprocessing:
        """The inverse of :meth:`to_dict`; missing settings have their defaults."""
        try:
            return cls(**settings)
        except TypeError as error:  # of a setting that does not exist
            raise InputError(f"preprocessing cannot be read: {error}.") from error


def _sides(resize: object) -> int | tuple[int, int]:
    if isinstance(resize, (tuple, list)) and len(resize) == 2:
        height, width = (check_count(side, name="resize") for side in resize)
        return height, width
    return check_count(resize, name="resize")


def _grey(images: Images) -> Images:
    """Luma ``(n, h, w, 1)``, rounded to the nearest; of equal channels it is their value."""
    luma = np.full(images.shape[:3], 1 << 15, np.uint32)
    for channel, weight in enumerate(_LUMA):
        luma += images[..., channel] * weight
    return (luma >> 16).astype(np.uint8)[..., None]


def _per_channel(values: Any, channels: int, *, name: str) -> tuple[float, ...]:
    try:
        several = [values] if channels == 1 and isinstance(values, int | float) else values
        numbers = tuple(float(value) for value in several)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != channels or not np.isfinite(numbers).all():
        rule = "one finite number" if channels == 1 else "three finite numbers"
        raise InputError(f"{name} must be {rule}, one per channel; got {values!r}.")
    return numbers
