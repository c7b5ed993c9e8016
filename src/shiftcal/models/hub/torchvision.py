"""Networks of torchvision, by name."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from shiftcal._optional import require_package
from shiftcal.errors import InputError
from shiftcal.models.hub.found import Found, inexpressible
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.weights import fill, load_weights

# What torchvision itself adds for networks whose published weights are used with it.
_WITH_WEIGHTS: dict[str, dict[str, Any]] = {
    "googlenet": {"transform_input": True, "aux_logits": True, "init_weights": False},
    "inception_v3": {"transform_input": True, "aux_logits": True, "init_weights": False},
}


def torchvision_model(name: str, *, weights: str | Path | None = None) -> Found:
    """A classifier of ``torchvision.models``, with the preprocessing and classes of its weights.

    Args:
        name: As ``torchvision.models.list_models`` has it, such as ``"resnet50"``.
        weights: File of weights for ImageNet; or which of the published ones, such as
            ``"IMAGENET1K_V1"``; by default the newest, which torchvision fetches. They are read
            with ``weights_only=True``.

    Raises:
        InputError: If there is no such classifier, or its preprocessing cannot be expressed.
    """
    needed_by = f"torchvision:{name}"
    models = require_package("torchvision.models", package="torchvision", needed_by=needed_by)
    known = models.list_models(module=models)
    if name not in known:
        near = ", ".join(difflib.get_close_matches(name, known, n=5)) or "none like it"
        raise InputError(f"torchvision has no classifier {name!r}; the nearest: {near}.")
    published = models.get_model_weights(name)
    named = str(weights) in published.__members__
    chosen = published[str(weights)] if named else published.DEFAULT
    preprocessing = preprocessing_of(chosen.transforms(), name=needed_by)
    module = models.get_model(name, weights=None, **_WITH_WEIGHTS.get(name, {}))
    what = f"torchvision's {name}"
    if weights is None or named:
        state = chosen.get_state_dict(progress=False, check_hash=True, weights_only=True)
        fill(module, state, source=str(chosen.url), what=what)
    else:
        load_weights(module, weights, what=what)
    return Found(module.eval(), preprocessing, chosen.meta.get("categories"))


def preprocessing_of(transforms: Any, *, name: str) -> Preprocessing:
    """The preset ``ImageClassification`` of torchvision in our words.

    Raises:
        InputError: For oblong sizes, other interpolations and other presets.
    """
    if not hasattr(transforms, "crop_size"):
        raise inexpressible(name, "transforms", type(transforms).__name__)
    sides = [_side(getattr(transforms, key), key, name) for key in ("resize_size", "crop_size")]
    how = str(getattr(transforms.interpolation, "value", transforms.interpolation))
    if how not in ("bilinear", "bicubic"):
        raise inexpressible(name, "interpolation", how)
    return Preprocessing(
        resize=sides[0],
        crop=sides[1],
        interpolation=how,  # type: ignore[arg-type]
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
    )


def _side(value: Any, key: str, name: str) -> int:
    sides = [value] if isinstance(value, int) else list(value)
    if len(sides) != 1:
        raise inexpressible(name, key, value)
    return int(sides[0])
