"""Images stored as the bytes of image files, wherever these are kept."""

from __future__ import annotations

from abc import abstractmethod
from io import BytesIO
from typing import Any, final

import numpy as np

from shiftcal._checks.images import LEAST_SIDE
from shiftcal._framing import Framing
from shiftcal._types import Images
from shiftcal.datasets.base import ImageSet
from shiftcal.datasets.image_files import open_picture
from shiftcal.errors import FileError, InputError


class EncodedImages(ImageSet):
    """Images that have to be decoded. A container says where the bytes of each are.

    They are resized and cut as they come from the decoder, without an array in between.
    """

    @abstractmethod
    def _encoded(self, index: int) -> bytes | memoryview:
        """The bytes of an image file. Called from several threads at once.

        Raises:
            FileError: If they cannot be had; the message names the image.
        """

    def _called(self, index: int) -> str:
        """What the image is called in a message about it."""
        return f"{self.ids([index])[0]} of {self.name}"

    @final
    def _image(self, index: int) -> Images:
        return np.array(self._picture(index))

    @final
    def _framed(self, index: int, framing: Framing) -> Images:
        picture = self._picture(index)
        width, height = picture.size
        if min(width, height) < LEAST_SIDE:
            raise InputError(
                f"images must be at least {LEAST_SIDE} pixels high and wide; this one is "
                f"{height} x {width}."
            )
        return np.array(framing.of_picture(picture))

    @final
    def _stored(self, index: int) -> bytes | memoryview:
        return self._encoded(index)

    def _picture(self, index: int) -> Any:
        encoded = self._encoded(index)
        if not len(encoded):
            raise FileError(f"{self._called(index)} is empty: it has no bytes.")
        return open_picture(BytesIO(encoded), name=self._called(index))
