"""The settings of Hugging Face's image processors in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from shiftcal.models.hub.found import inexpressible
from shiftcal.models.preprocessing import Preprocessing

# Those that resize, cut from the centre, rescale and normalise, in this order and no more.
_SIMPLE = {"ViT", "DeiT", "Bit", "CLIP", "Siglip", "MobileNetV1", "MobileNetV2", "Beit", "Pvt"}
# Numbers of Pillow.
_INTERPOLATIONS: dict[Any, Literal["bilinear", "bicubic"]] = {2: "bilinear", 3: "bicubic"}
_KNOWN = {
    "do_resize", "size", "resample",
    "do_center_crop", "crop_size", "crop_pct",
    "do_rescale", "rescale_factor",
    "do_normalize", "image_mean", "image_std",
    "image_processor_type", "feature_extractor_type", "processor_class", "do_convert_rgb",
}  # fmt: skip


def preprocessing_of(settings: Mapping[str, Any], *, name: str) -> Preprocessing:
    """What an image processor does, from ``preprocessor_config.json`` with its defaults filled in.

    Where images are not square and an odd number of pixels is cut away, the centre can be one pixel
    beside theirs; their own two implementations differ there as well.

    Raises:
        InputError: For everything it may do that cannot be expressed.
    """
    given = settings.get("image_processor_type") or settings.get("feature_extractor_type") or ""
    kind = given.removesuffix("Fast").removesuffix("Pil")
    kind = kind.removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    if kind not in _SIMPLE and kind != "ConvNext":
        raise inexpressible(name, "image_processor_type", given)
    for key, value in settings.items():
        if key not in _KNOWN and value not in (None, False):
            raise inexpressible(name, key, value)
    resize, crop = _convnext(settings, name) if kind == "ConvNext" else _sides(settings, name)
    if resize is not None and settings.get("resample") not in _INTERPOLATIONS:
        raise inexpressible(name, "resample", settings.get("resample"))
    how = _INTERPOLATIONS.get(settings.get("resample"), "bilinear")
    mean, std = _normalisation(settings)
    return Preprocessing(resize=resize, crop=crop, interpolation=how, mean=mean, std=std)


def _sides(
    settings: Mapping[str, Any], name: str
) -> tuple[int | tuple[int, int] | None, int | None]:
    resize = _size(settings.get("size"), "size", name) if settings.get("do_resize") else None
    if not settings.get("do_center_crop"):
        return resize, None
    crop = _size(settings.get("crop_size"), "crop_size", name)
    if isinstance(crop, tuple) and crop[0] == crop[1]:
        crop = crop[0]
    if not isinstance(crop, int):
        raise inexpressible(name, "crop_size", settings.get("crop_size"))
    return resize, crop


def _convnext(
    settings: Mapping[str, Any], name: str
) -> tuple[int | tuple[int, int] | None, int | None]:
    """Below 384 a part is cut from the centre; from there on the whole image is squeezed."""
    if not settings.get("do_resize"):
        return None, None
    side = _size(settings.get("size"), "size", name)
    if not isinstance(side, int):
        raise inexpressible(name, "size", settings.get("size"))
    if side >= 384:
        return (side, side), None
    return int(side / (settings.get("crop_pct") or 224 / 256)), side


def _size(value: Any, key: str, name: str) -> int | tuple[int, int]:
    sides = {k: v for k, v in dict(value or {}).items() if v is not None}
    if set(sides) == {"shortest_edge"}:
        return int(sides["shortest_edge"])
    if set(sides) == {"height", "width"}:
        return int(sides["height"]), int(sides["width"])
    raise inexpressible(name, key, value)


def _normalisation(settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """``(factor x - mean) / std`` as ``(x / 255 - mean') / std'``."""
    factor = float(settings["rescale_factor"]) if settings.get("do_rescale") else 1.0
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if settings.get("do_normalize"):
        mean, std = tuple(settings["image_mean"]), tuple(settings["image_std"])
    scale = factor * 255
    if abs(scale - 1) < 1e-9:
        return mean, std
    return tuple(m / scale for m in mean), tuple(s / scale for s in std)
