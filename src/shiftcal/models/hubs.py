"""Networks by name from timm, torchvision and Hugging Face, with their preprocessing."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from shiftcal.errors import FileError, InputError, require, require_package
from shiftcal.models.model import first_line
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.pytorch import fill, load_weights


class Network(NamedTuple):
    """A network and what is known of it.

    Attributes:
        module: A PyTorch module.
        preprocessing: What its weights were trained with; ``None`` if unknown.
        classes: Names in the order of the logits; ``None`` if unknown.
    """

    module: Any
    preprocessing: Preprocessing | None = None
    classes: Sequence[str] | None = None


def _cannot(name: str, setting: str, value: object) -> InputError:
    return InputError(
        f"the preprocessing of {name} has {setting} = {value!r}, which cannot be expressed here. "
        "Prepare the images yourself and pass the module: as_model(module, preprocessing=...)."
    )


def _preprocessing(
    name: str, resize: Any, crop: Any, how: Any, mean: Any, std: Any
) -> Preprocessing:
    if resize is not None and how not in ("bilinear", "bicubic"):
        raise _cannot(name, "interpolation", how)
    how = how if how in ("bilinear", "bicubic") else "bilinear"
    return Preprocessing(resize, crop, how, mean=tuple(mean), std=tuple(std))


def _check_known(hub: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = ", ".join(difflib.get_close_matches(name, known, n=5)) or "none like it"
        raise InputError(f"{hub} has no network {name!r}; the nearest: {near}.")


def timm_model(name: str, *, weights: str | None = None) -> Network:
    """A network of ``timm.create_model``, with the preprocessing of ``resolve_data_config``.

    Args:
        name: As timm has it, such as ``"resnet50"``.
        weights: File of weights; default: those that timm publishes.
    """
    timm = require_package("timm", package="timm", needed_by=f"timm:{name}")
    data = require_package("timm.data", package="timm", needed_by=f"timm:{name}")
    if not timm.is_model(name):
        _check_known("timm", name, timm.list_models())
    module = timm.create_model(name, pretrained=weights is None)
    if weights is not None:
        load_weights(module, weights, what=f"timm's {name}")
    settings = data.resolve_data_config({}, model=module)
    labels = (getattr(module, "pretrained_cfg", None) or {}).get("label_names")
    return Network(module, timm_preprocessing(settings, name=f"timm:{name}"), labels)


def timm_preprocessing(settings: Mapping[str, Any], *, name: str) -> Preprocessing:
    """The data configuration of timm as a :class:`Preprocessing`.

    The shorter side is resized to ``floor(side / crop_pct)``, and a square of ``side`` cut from the
    centre; ``crop_mode`` ``"squash"`` resizes both sides.
    """
    channels, height, width = settings["input_size"]
    if channels != 3 or height != width:
        raise _cannot(name, "input_size", tuple(settings["input_size"]))
    mode = settings.get("crop_mode") or "center"
    if mode not in ("center", "squash"):
        raise _cannot(name, "crop_mode", mode)
    side = math.floor(height / (settings.get("crop_pct") or 0.875))
    resize = (side, side) if mode == "squash" else side
    how, mean, std = (settings[key] for key in ("interpolation", "mean", "std"))
    return _preprocessing(name, resize, height, how, mean, std)


def torchvision_model(name: str, *, weights: str | None = None) -> Network:
    """A classifier of ``torchvision.models``, with the preprocessing and classes of its weights.

    Args:
        name: As ``torchvision.models.list_models`` has it, such as ``"resnet50"``.
        weights: File of weights for ImageNet, or the name of published ones, such as
            ``"IMAGENET1K_V1"``; default: the newest. They are read with ``weights_only=True``.
    """
    where, what = f"torchvision:{name}", f"torchvision's {name}"
    models = require_package("torchvision.models", package="torchvision", needed_by=where)
    _check_known("torchvision", name, models.list_models(module=models))
    published = models.get_model_weights(name)
    named = str(weights) in published.__members__
    chosen = published[str(weights)] if named else published.DEFAULT
    preprocessing = torchvision_preprocessing(chosen.transforms(), name=where)
    # What torchvision itself adds for the published weights of these.
    options = {"transform_input": True, "aux_logits": True, "init_weights": False}
    special = options if name in ("googlenet", "inception_v3") else {}
    module = models.get_model(name, weights=None, **special)
    if weights is None or named:
        state = chosen.get_state_dict(progress=False, check_hash=True, weights_only=True)
        fill(module, state, source=str(chosen.url), what=what)
    else:
        load_weights(module, weights, what=what)
    return Network(module, preprocessing, chosen.meta.get("categories"))


def torchvision_preprocessing(transforms: Any, *, name: str) -> Preprocessing:
    """The preset ``ImageClassification`` of torchvision as a :class:`Preprocessing`."""
    if not hasattr(transforms, "crop_size"):
        raise _cannot(name, "transforms", type(transforms).__name__)
    sides = []
    for key in ("resize_size", "crop_size"):
        value = getattr(transforms, key)
        several = [value] if isinstance(value, int) else list(value)
        if len(several) != 1:
            raise _cannot(name, key, value)
        sides.append(int(several[0]))
    how = str(getattr(transforms.interpolation, "value", transforms.interpolation))
    return _preprocessing(name, sides[0], sides[1], how, transforms.mean, transforms.std)


def huggingface_model(name: str, *, revision: str | None = None) -> Network:
    """A network of ``AutoModelForImageClassification``, with its preprocessing and classes.

    ``.safetensors`` are used if there are any, else a ``.bin`` with ``weights_only=True``. Code
    that comes with a model never runs.

    Args:
        name: Such as ``"microsoft/resnet-50"``, or a folder made by ``save_pretrained``.
        revision: Branch, tag or commit of a name.
    """
    require("torch", extra="torch", needed_by=f"hf:{name}")
    transformers = require_package("transformers", package="transformers", needed_by=f"hf:{name}")
    options: dict[str, Any] = {"trust_remote_code": False}
    if revision is not None:
        options["revision"] = revision
    auto, config = transformers.AutoModelForImageClassification, None
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options)
        processor = transformers.AutoImageProcessor.from_pretrained(name, **options).to_dict()
        options["output_loading_info"] = True
        try:
            module, info = auto.from_pretrained(name, use_safetensors=True, **options)
        except OSError:  # there are none
            module, info = auto.from_pretrained(
                name, use_safetensors=False, weights_only=True, **options
            )
        # transformers fills what a file lacks with random numbers.
        absent = [*info.get("missing_keys", ()), *info.get("mismatched_keys", ())]
        if absent:
            raise InputError(f"it has no weights for {len(absent)} parts, such as {absent[0]}")
    except Exception as error:  # transformers may raise anything
        kinds = getattr(config, "architectures", None) or []
        if kinds and not any("ForImageClassification" in kind for kind in kinds):
            raise InputError(
                f"hf:{name} must be an image classifier; it is a {kinds[0]}. For texts and other "
                "inputs make the bank in Python: SurrogateBank.from_inputs(function, texts, "
                "labels, corruption=...), where function returns the logits."
            ) from error
        raise FileError(
            f"hf:{name} could not be loaded: {type(error).__name__}: {first_line(error)}"
        ) from error
    names = getattr(module.config, "id2label", None) or {}
    classes: list[str] | None = [str(names[index]) for index in sorted(names, key=int)]
    placeholders = [f"LABEL_{index}" for index in range(len(names))]
    if len(names) < 2 or classes == placeholders or len(set(classes or ())) < len(names):
        classes = None
    return Network(module, huggingface_preprocessing(processor, name=f"hf:{name}"), classes)


# Image processors that resize, crop, rescale and normalise, in this order and no more.
_SIMPLE = re.compile(
    "(ViT|DeiT|Bit|CLIP|Siglip|MobileNetV1|MobileNetV2|Beit|Pvt|ConvNext)"
    "(ImageProcessor|FeatureExtractor)(Pil|Fast)*"
)
_KNOWN = re.compile(
    "do_(resize|center_crop|rescale|normalize|convert_rgb)|size|resample|crop_(size|pct)|"
    "rescale_factor|image_(mean|std|processor_type)|feature_extractor_type|processor_class"
)


def huggingface_preprocessing(settings: Mapping[str, Any], *, name: str) -> Preprocessing:
    """What an image processor does, from ``preprocessor_config.json`` with its defaults.

    Where an odd number of pixels is cut away, the centre can be one pixel off theirs; their own
    two implementations differ there as well.

    Raises:
        InputError: For everything it may do that cannot be expressed.
    """
    processor = settings.get("image_processor_type") or settings.get("feature_extractor_type") or ""
    simple = _SIMPLE.fullmatch(processor)
    if simple is None:
        raise _cannot(name, "image_processor_type", processor)
    kind = simple[1]
    for key, value in settings.items():
        if not _KNOWN.fullmatch(key) and value not in (None, False):
            raise _cannot(name, key, value)

    def size(key: str) -> int | tuple[int, int]:
        sides = {k: v for k, v in dict(settings.get(key) or {}).items() if v is not None}
        if set(sides) == {"shortest_edge"}:
            return int(sides["shortest_edge"])
        if set(sides) == {"height", "width"}:
            return int(sides["height"]), int(sides["width"])
        raise _cannot(name, key, settings.get(key))

    resize, crop = size("size") if settings.get("do_resize") else None, None
    if kind == "ConvNext" and resize is not None:
        if not isinstance(resize, int):
            raise _cannot(name, "size", settings.get("size"))
        if resize >= 384:  # the whole image is resized; below, its centre is cut out
            resize = (resize, resize)
        else:
            resize, crop = int(resize / (settings.get("crop_pct") or 224 / 256)), resize
    elif kind != "ConvNext" and settings.get("do_center_crop"):
        side = size("crop_size")
        crop = side if isinstance(side, int) else side[0]
        if side not in (crop, (crop, crop)):
            raise _cannot(name, "crop_size", settings.get("crop_size"))
    resample = settings.get("resample")
    how = {2: "bilinear", 3: "bicubic"}.get(resample)  # type: ignore[arg-type]
    if resize is not None and how is None:
        raise _cannot(name, "resample", resample)
    # (factor x - mean) / std as (x / 255 - mean') / std'.
    scale = 255 * (float(settings["rescale_factor"]) if settings.get("do_rescale") else 1.0)
    scale = 1.0 if abs(scale - 1) < 1e-9 else scale
    mean: Any = (0.0,) * 3
    std: Any = (1.0,) * 3
    if settings.get("do_normalize"):
        mean, std = settings["image_mean"], settings["image_std"]
    mean, std = ([value / scale for value in values] for values in (mean, std))
    return _preprocessing(name, resize, crop, how, mean, std)


MAKERS: dict[str, Callable[..., Network]] = {
    "timm": timm_model,
    "torchvision": torchvision_model,
    "hf": huggingface_model,
}
