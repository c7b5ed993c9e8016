"""Networks of pytorchcv, by name."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

from shiftcal._optional import require_package
from shiftcal.errors import InputError
from shiftcal.models.hub.found import Found
from shiftcal.models.preprocessing import Preprocessing
from shiftcal.models.weights import load_weights

# Data sets of 32-pixel images whose networks take them as they are.
_SMALL = ("_cifar10", "_cifar100")
_CIFAR = Preprocessing(mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
_IMAGENET = Preprocessing(
    resize=math.ceil(224 / 0.875),
    crop=224,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
# Newer and older versions keep the list of published files in different places.
_STORES = ("pytorchcv.models.common.model_store", "pytorchcv.models.model_store")


def pytorchcv_model(name: str, *, weights: str | Path | None = None) -> Found:
    """A classifier of pytorchcv.

    pytorchcv itself would unpickle the file it fetches; here it only fetches and verifies it, and
    the weights are read with ``weights_only=True``.

    Args:
        name: As pytorchcv has it, such as ``"resnet20_cifar10"``.
        weights: File of weights; without one pytorchcv fetches those it has published.

    Raises:
        InputError: If there is no such network, or no weights of it are published.
    """
    provider = require_package(
        "pytorchcv.model_provider", package="pytorchcv", needed_by=f"pytorchcv:{name}"
    )
    try:
        module = provider.get_model(name, pretrained=False)
    except ValueError as error:
        raise InputError(f"pytorchcv has no network {name!r}: {error}") from error
    file = _published(name) if weights is None else weights
    load_weights(module, file, what=f"pytorchcv's {name}")
    return Found(module.eval(), preprocessing_of(module, name))


def preprocessing_of(module: Any, name: str) -> Preprocessing | None:
    """CIFAR's mean and deviation for its networks, ImageNet's and a central crop for most others.

    ``None`` for those that were trained with something else, or may have been: other sizes than
    224, and the EfficientNets of adversarial training.
    """
    if name.endswith(_SMALL):
        return _CIFAR
    usual = getattr(module, "in_size", None) == (224, 224) and module.num_classes == 1000
    if not usual or (name.startswith("efficientnet_") and name.endswith("c")):
        return None
    return _IMAGENET


def _published(name: str) -> str:
    for place in _STORES:
        try:
            store = importlib.import_module(place)
        except ModuleNotFoundError:
            continue
        try:
            return str(store.get_model_file(model_name=name))
        except (ValueError, KeyError) as error:
            raise InputError(
                f"pytorchcv has no published weights of {name!r}. Say weights=FILE."
            ) from error
    raise InputError(f"pytorchcv says no place of its weights of {name!r}. Say weights=FILE.")
