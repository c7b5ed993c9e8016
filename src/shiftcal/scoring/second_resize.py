"""Images that were made ready for a network, and a network that would make them ready again."""

from __future__ import annotations

import warnings

from shiftcal.datasets import ImageSet
from shiftcal.errors import InputWarning
from shiftcal.models import Model


def warn_of_second_resize(model: Model, images: ImageSet) -> None:
    """Warn if a model resizes images that were already brought to the size of a network.

    Warns:
        InputWarning: With how to leave the resizing out.
    """
    side, resize = images.ready_made, model.preprocessing.framing.resize
    if side is None or resize in (None, side, (side, side)):
        return
    to = f"{resize[0]} x {resize[1]}" if isinstance(resize, tuple) else str(resize)
    warnings.warn(
        f"the images of {images.name} were resized and cut to {side} x {side} when they were made, "
        f"and the model's preprocessing resizes them to {to} once more, so that it sees them "
        "larger than it was trained to, and less of them. If that is not meant, take it away: "
        "?resize=none in the spec of the model, or Preprocessing(resize=None, ...).",
        InputWarning,
        stacklevel=4,
    )
