"""Any Python function from images to logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from shiftcal.errors import InputError
from shiftcal.models.base import Model
from shiftcal.models.preprocessing import Preprocessing


class CallableModel(Model):
    """A function that takes a batch of images and returns ``(n, k)`` logits.

    It may also return a pair, logits and features ``(n, d)``. It is never called but with images
    whose logits were asked for.

    Args:
        function: Called with an array: what the preprocessing makes of the images.
        raw: Give it the pixels as they are, uint8 of shape ``(n, height, width, 3)``; of the
            preprocessing only resizing and cropping can then be asked for.
        key: A name that says which function this is, such as ``"my-model-v3"``; change it when
            the function changes. A function without it has no fingerprint, since no one can tell
            what it depends on.
        preprocessing: As for every model.
        **options: ``classes``, ``output`` and ``batch_size``, as for every model.
    """

    def __init__(
        self,
        function: Callable[[NDArray[Any]], Any],
        *,
        raw: bool = False,
        key: str | None = None,
        preprocessing: Preprocessing | None = None,
        **options: Any,
    ) -> None:
        if not callable(function):
            raise InputError(f"function must be callable; got {type(function).__name__}.")
        super().__init__(preprocessing=preprocessing, key=key, **options)
        if raw:
            self.preprocessing = replace(self.preprocessing, layout="nhwc", dtype="uint8")
        self.function = function

    def _forward(self, batch: NDArray[Any]) -> Any:
        return self.function(batch)
