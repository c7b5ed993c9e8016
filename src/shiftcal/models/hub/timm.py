"""Networks of timm, by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shiftcal._optional import require_package
from shiftcal.errors import InputError
from shiftcal.models.hub.found import Found, inexpressible
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.weights import load_weights


def timm_model(name: str, *, weights: str | Path | None = None) -> Found:
    """A network of ``timm.create_model``, with the preprocessing of ``resolve_data_config``.

    Args:
        name: As timm has it, such as ``"resnet50"`` or ``"vit_base_patch16_224.augreg_in21k"``.
        weights: File of weights; without one timm fetches those it has published.

    Raises:
        InputError: If timm has no such network, or its preprocessing cannot be expressed.
    """
    timm = require_package("timm", package="timm", needed_by=f"timm:{name}")
    data = require_package("timm.data", package="timm", needed_by=f"timm:{name}")
    if not timm.is_model(name):
        near = ", ".join(difflib.get_close_matches(name, timm.list_models(), n=5)) or "none like it"
        raise InputError(f"timm has no network {name!r}; the nearest: {near}.")
    module = timm.create_model(name, pretrained=weights is None)
    if weights is not None:
        load_weights(module, weights, what=f"timm's {name}")
    settings = data.resolve_data_config({}, model=module)
    labels = (getattr(module, "pretrained_cfg", None) or {}).get("label_names")
    return Found(module.eval(), preprocessing_of(settings, name=f"timm:{name}"), labels)


def preprocessing_of(settings: Mapping[str, Any], *, name: str) -> Preprocessing:
    """The data configuration of timm in our words.

    The shorter side is resized to ``floor(side / crop_pct)``, and the square of ``side`` cut from
    the centre; ``crop_mode`` ``"squash"`` resizes both sides.

    Raises:
        InputError: For other modes of cropping, oblong inputs and other interpolations.
    """
    channels, height, width = settings["input_size"]
    if channels != 3 or height != width:
        raise inexpressible(name, "input_size", tuple(settings["input_size"]))
    mode = settings.get("crop_mode") or "center"
    if mode not in ("center", "squash"):
        raise inexpressible(name, "crop_mode", mode)
    if settings["interpolation"] not in ("bilinear", "bicubic"):
        raise inexpressible(name, "interpolation", settings["interpolation"])
    side = math.floor(height / (settings.get("crop_pct") or 0.875))
    return Preprocessing(
        resize=(side, side) if mode == "squash" else side,
        crop=height,
        interpolation=settings["interpolation"],
        mean=tuple(settings["mean"]),
        std=tuple(settings["std"]),
    )
