"""The ResNets of CIFAR-10 (He et al., 2016, section 4.2), for the weights published of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shiftcal._checks import check_count
from shiftcal._optional import require
from shiftcal.errors import FileError, InputError
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.weights import fill, read_weights

DEPTHS = (20, 32, 44, 56, 110)
# What the published weights were trained with: the mean and deviation of ImageNet.
PREPROCESSING = Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


def cifar_resnet(depth: int, *, weights: str | Path | None = None, n_classes: int = 10) -> Any:
    """A CIFAR ResNet with ``6 m + 2`` layers, as a PyTorch module in evaluation mode.

    It carries its preprocessing, which :func:`as_model` finds.

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
    from shiftcal.models.architectures._cifar_resnet_modules import CifarResNet

    network = CifarResNet((depth - 2) // 6, n_classes)
    network.preprocessing = PREPROCESSING
    if weights is not None:
        state = read_weights(weights)
        what = f"a CIFAR ResNet-{depth} of {n_classes} classes"
        try:
            fill(network, state, source=str(weights), what=what)
        except FileError as error:
            raise FileError(f"{error}{_hint(state)}") from error
    return network.eval()


def _hint(state: Mapping[str, Any]) -> str:
    """Which network of this kind the weights are of, if they are of one."""
    blocks = sum(re.fullmatch(r"layer1\.\d+\.conv1\.weight", name) is not None for name in state)
    stem, last = (state.get(f"{name}.weight") for name in ("conv1", "linear"))
    depth = 6 * blocks + 2
    # A ResNet for ImageNet has layers of the same names, with other shapes.
    if depth not in DEPTHS or stem is None or last is None or stem.shape != (16, 3, 3, 3):
        return ""
    classes = "" if len(last) == 10 else f"?n_classes={len(last)}"
    return f" These are the weights of a ResNet-{depth}: cifar-resnet:{depth}{classes}."
